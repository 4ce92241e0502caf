// Windows that slide over the two spatial dimensions of an image: sizes shared by convolution and
// pooling. All in pixels, (height, width).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensor/tensor_type.h"

namespace capstan {

struct Window {
  std::array<int64_t, 2> kernel = {1, 1};
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};  // at each side
  std::array<int64_t, 2> dilation = {1, 1};

  // Where output place `o` begins along dimension `d`; may be negative (padding).
  int64_t Begin(size_t d, int64_t o) const { return o * stride[d] - padding[d]; }
};

// Two positive (or, for padding, non-negative) numbers each; InvalidArgument names the attribute.
absl::StatusOr<Window> MakeWindow(const std::vector<int64_t>& kernel,
                                  const std::vector<int64_t>& stride,
                                  const std::vector<int64_t>& padding,
                                  const std::vector<int64_t>& dilation);

// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, ceil with `ceil_mode`; then the
// last window must begin inside the image or its left padding (PyTorch's and Paddle's rule).
// InvalidArgument where the window is larger than the padded image.
absl::StatusOr<std::array<int64_t, 2>> OutputSize(const Window& window, int64_t height,
                                                  int64_t width, bool ceil_mode);

}  // namespace capstan
