// The EXIF orientation of a picture: which way up it was taken.
// Source: CIPA DC-008 (Exif 2.32), tag 0x0112.
#pragma once

#include <string_view>

#include "engine/data/image.h"

namespace capstan {

// The orientation (1..8) of a TIFF block as EXIF holds it; 1 (upright) where there is none or the
// block is damaged, as viewers do.
int ExifOrientation(std::string_view tiff);

// Turns the stored picture upright; `scratch` is memory to work in.
void ApplyOrientation(int orientation, Image* image, Image* scratch);

}  // namespace capstan
