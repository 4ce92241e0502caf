// The transforms of pictures as functions. The random ones draw from the key alone.
//
// Sizes depend on the picture, so a transform of pixels can find one that it cannot work on (a crop
// larger than the picture): that sample is bad. Transforms of values cannot fail.
// Safe from any thread; `in` and `out` differ.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "engine/base/random.h"
#include "engine/data/image.h"
#include "engine/data/transform_options.h"

namespace capstan {

absl::Status ResizeImage(const ResizeImageOptions&, const RandomKey&, const Image& in, Image* out);
absl::Status CropImage(const CropImageOptions&, const RandomKey&, const Image& in, Image* out);
absl::Status RandCropImage(const RandCropImageOptions&, const RandomKey&, const Image& in,
                           Image* out);
absl::Status RandFlipImage(const RandFlipImageOptions&, const RandomKey&, const Image& in,
                           Image* out);
absl::Status RandCropPad(const RandCropPadOptions&, const RandomKey&, const Image& in, Image* out);
absl::Status RandAffine(const RandAffineOptions&, const RandomKey&, const Image& in, Image* out);
absl::Status ColorJitter(const ColorJitterOptions&, const RandomKey&, const Image& in, Image* out);

// Pixels to values, in the same HWC order.
void NormalizeImage(const NormalizeImageOptions&, const Image& in, float* values);
void RandomErasing(const RandomErasingOptions&, const RandomKey&, const ImageShape& shape,
                   float* values);

// The part of a picture of height x width that RandCropImage keeps.
Box RandCropBox(const RandCropImageOptions&, const RandomKey&, int64_t height, int64_t width);

}  // namespace capstan
