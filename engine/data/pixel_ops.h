// Changes of a picture's pixels in place: what ColorJitter, RandAugment and AutoAugment are made
// of.
//
// A factor of 1 changes nothing; 0 leaves black (brightness), the mean grey (contrast), grey pixels
// (color) or a blurred picture (sharpness); beyond 1 it goes the other way.
// Color and hue want 3 channels, the others any number. Safe from any thread.
// Source of the definitions: Pillow, ImageEnhance and ImageOps.
#pragma once

#include <cstdint>

#include "engine/data/image.h"

namespace capstan {

void AdjustBrightness(double factor, Image* image);
void AdjustContrast(double factor, Image* image);
void AdjustColor(double factor, Image* image);
void AdjustSharpness(double factor, Image* image);
// Turns the hue; 1 is the whole circle.
void AdjustHue(double turn, Image* image);

// Keeps the upper bits of each value.
void Posterize(int64_t bits, Image* image);
// Inverts values from `threshold` on.
void Solarize(double threshold, Image* image);
// Stretches each channel to 0..255.
void AutoContrast(Image* image);
// Makes each channel's values about equally frequent.
void Equalize(Image* image);
void Invert(Image* image);

}  // namespace capstan
