// Bilinear scaling of a part of a picture: half-pixel centres, edges repeated, rounded to nearest.
//
// Without antialias each output pixel is made of the two nearest input pixels along each axis; with
// it, when scaling down, of all pixels under a triangle as wide as the scale.
#pragma once

#include "engine/data/image.h"

namespace capstan {

// Scales `region` of `in` to height x width. The region must lie inside the picture.
void Resample(const Image& in, const Box& region, int64_t height, int64_t width, bool antialias,
              Image* out);

}  // namespace capstan
