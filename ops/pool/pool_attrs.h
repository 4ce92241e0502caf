// Attributes and shapes of the rows that pool by windows, whatever they make of a window.
//
// The functions take any attribute struct with kernel, stride, padding and ceil_mode. Padding is at
// most half of the window, so that every window holds a pixel of the image.
//
//   ASSIGN_OR_RETURN(const Shape y, PooledShape(call.Attrs<PoolAttrs>(), call.In(0).shape));
#pragma once

#include <array>
#include <vector>

#include "engine/base/reflect.h"
#include "engine/base/status.h"
#include "engine/tensor/tensor_type.h"
#include "ops/pool/window.h"

namespace capstan {

// The fields that all pooling attributes share.
template <typename Attrs>
constexpr std::array<FieldInfo, 4> PoolFields() {
  return {Field<&Attrs::kernel, Attrs>("kernel", "height, width of the window", kAtLeastOne),
          Field<&Attrs::stride, Attrs>("stride", "height, width of a step", kAtLeastOne),
          Field<&Attrs::padding, Attrs>("padding", "pixels added at top and bottom, left and right",
                                        kNonNegative),
          Field<&Attrs::ceil_mode, Attrs>("ceil_mode", "keep a last window that only partly fits")};
}

// The field of gradient rows that tells the size of what was pooled.
template <typename Attrs>
constexpr std::array<FieldInfo, 1> InputSizeField() {
  return {Field<&Attrs::input_size, Attrs>("input_size", "height and width of the pooled image",
                                           kAtLeastOne)};
}

struct PoolAttrs {
  std::vector<int64_t> kernel = {2, 2};
  std::vector<int64_t> stride = {2, 2};
  std::vector<int64_t> padding = {0, 0};
  bool ceil_mode = false;

  static constexpr auto Fields() { return PoolFields<PoolAttrs>(); }
};

template <typename Attrs>
absl::StatusOr<Window> PoolWindow(const Attrs& attrs) {
  return MakeWindow(attrs.kernel, attrs.stride, attrs.padding, {1, 1});
}

// The shape of y for x [n,c,h,w].
absl::StatusOr<Shape> PooledShape(const Window& window, bool ceil_mode, const Shape& x);
template <typename Attrs>
absl::StatusOr<Shape> PooledShape(const Attrs& attrs, const Shape& x) {
  ASSIGN_OR_RETURN(const Window window, PoolWindow(attrs));
  return PooledShape(window, attrs.ceil_mode, x);
}

// [n,c] of dy with the size of the pooled image; two numbers.
absl::StatusOr<Shape> UnpooledShape(const Shape& dy, const std::vector<int64_t>& input_size);
// The shape of dx, from dy and attrs.input_size; pooling dx must give dy's shape.
template <typename Attrs>
absl::StatusOr<Shape> PoolGradShape(const Attrs& attrs, const Shape& dy) {
  ASSIGN_OR_RETURN(const Shape x, UnpooledShape(dy, attrs.input_size));
  ASSIGN_OR_RETURN(const Shape y, PooledShape(attrs, x));
  if (y == dy) return x;
  return InvalidArgument("dy is {}, but pooling gives {}", dy.ToString(), y.ToString());
}

}  // namespace capstan
