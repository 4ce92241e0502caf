// Affine maps of pictures, bilinear.
#pragma once

#include <cstdint>

#include "engine/data/image.h"

namespace capstan {

// Where the point (x, y) of the result comes from: (xx x + xy y + x0, yx x + yy y + y0). In pixels
// from the upper left corner; the centre of the first pixel is at (0.5, 0.5).
struct Affine {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// A result as large as `in`; around `in` everything has the value `fill`.
void Warp(const Image& in, const Affine& source, uint8_t fill, Image* out);

}  // namespace capstan
