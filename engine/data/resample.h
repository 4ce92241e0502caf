// Scaling of a part of a picture: half-pixel centres, rounded to nearest.
//
// Without antialias each output pixel is made of the nearest input pixels along each axis (2 for
// bilinear, 4 for bicubic with a = -0.75, 8 for lanczos), edges repeated: OpenCV's rule. With it,
// when scaling down, the same curve is as wide as the scale and what lies outside of the region is
// left out (bicubic with a = -0.5, lanczos over 3 lobes): Pillow's rule. `area` averages what an
// output pixel covers and is bilinear when scaling up.
// Source of the curves: R. Keys, "Cubic convolution interpolation for digital image processing",
// IEEE Trans. ASSP 29 (1981).
#pragma once

#include "engine/data/image.h"
#include "engine/data/transform_options.h"

namespace capstan {

struct ResampleOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = false;
};

// Scales `region` of `in` to height x width. The region must lie inside the picture.
void Resample(const Image& in, const Box& region, int64_t height, int64_t width,
              const ResampleOptions& options, Image* out);

}  // namespace capstan
