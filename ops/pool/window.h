// Windows that slide over the two spatial dimensions of an image: sizes shared by convolution and
// pooling. All in pixels, (height, width).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace capstan {

// Places [begin, end) along one dimension.
struct PixelRange {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
};

struct Window {
  std::array<int64_t, 2> kernel = {1, 1};
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};  // at each side
  std::array<int64_t, 2> dilation = {1, 1};

  // Where output place `o` begins along dimension `d`; may be negative (padding).
  constexpr int64_t Begin(size_t d, int64_t o) const { return o * stride[d] - padding[d]; }
  // From the first to the last pixel that the window touches.
  constexpr int64_t Reach(size_t d) const { return dilation[d] * (kernel[d] - 1) + 1; }
  // The places of an image of `size` pixels that output place `o` sees (dilation 1).
  constexpr PixelRange Inside(size_t d, int64_t o, int64_t size) const {
    return {std::max<int64_t>(Begin(d, o), 0), std::min(Begin(d, o) + kernel[d], size)};
  }
  // Of `outputs` output places those that see the image's `place` (dilation 1).
  constexpr PixelRange Seeing(size_t d, int64_t place, int64_t outputs) const {
    const int64_t last = place + padding[d], before = last - kernel[d];
    return {before < 0 ? 0 : before / stride[d] + 1, std::min(last / stride[d] + 1, outputs)};
  }
};

// Two positive (or, for padding, non-negative) numbers each; InvalidArgument names the attribute.
absl::StatusOr<Window> MakeWindow(const std::vector<int64_t>& kernel,
                                  const std::vector<int64_t>& stride,
                                  const std::vector<int64_t>& padding,
                                  const std::vector<int64_t>& dilation);

// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, ceil with `ceil_mode`; then the
// last window must begin inside the image or its left padding (PyTorch's and Paddle's rule).
// InvalidArgument where the window is larger than the padded image or there are no pixels.
absl::StatusOr<std::array<int64_t, 2>> OutputSize(const Window& window, int64_t height,
                                                  int64_t width, bool ceil_mode);

}  // namespace capstan
