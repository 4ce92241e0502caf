#include "engine/data/warp.h"

#include <cmath>

namespace capstan {

void Warp(const Image& in, const Affine& source, uint8_t fill, Image* out) {
  const int64_t channels = in.shape.channels, width = in.shape.width, height = in.shape.height;
  out->Reset(in.shape);
  const auto pixel = [&](int64_t x, int64_t y, int64_t c) -> float {
    const bool inside = x >= 0 && y >= 0 && x < width && y < height;
    return inside ? in.Row(y)[x * channels + c] : fill;
  };
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* to = out->Row(y);
    const double qy = static_cast<double>(y) + 0.5;
    for (int64_t x = 0; x < width; ++x) {
      const double qx = static_cast<double>(x) + 0.5;
      const double px = source.xx * qx + source.xy * qy + source.x0 - 0.5;
      const double py = source.yx * qx + source.yy * qy + source.y0 - 0.5;
      const double fx = std::floor(px), fy = std::floor(py);
      const auto ix = static_cast<int64_t>(fx), iy = static_cast<int64_t>(fy);
      const auto wx = static_cast<float>(px - fx), wy = static_cast<float>(py - fy);
      const bool inside = ix >= 0 && iy >= 0 && ix + 1 < width && iy + 1 < height;
      for (int64_t c = 0; c < channels; ++c) {
        float corners[4];
        if (inside) {
          const uint8_t* p = in.Row(iy) + ix * channels + c;
          const uint8_t* q = p + in.stride();
          corners[0] = p[0], corners[1] = p[channels], corners[2] = q[0], corners[3] = q[channels];
        } else {
          corners[0] = pixel(ix, iy, c), corners[1] = pixel(ix + 1, iy, c);
          corners[2] = pixel(ix, iy + 1, c), corners[3] = pixel(ix + 1, iy + 1, c);
        }
        const float top = corners[0] * (1 - wx) + corners[1] * wx;
        const float bottom = corners[2] * (1 - wx) + corners[3] * wx;
        *to++ = static_cast<uint8_t>(top * (1 - wy) + bottom * wy + 0.5f);
      }
    }
  }
}

}  // namespace capstan
