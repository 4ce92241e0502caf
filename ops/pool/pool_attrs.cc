#include "ops/pool/pool_attrs.h"

namespace capstan {

absl::StatusOr<Shape> PooledShape(const Window& window, bool ceil_mode, const Shape& x) {
  if (x.ndim() != 4) {
    return InvalidArgument("x is {}; wanted an image [n,c,h,w]", x.ToString());
  }
  for (size_t d = 0; d < 2; ++d) {
    if (2 * window.padding[d] > window.kernel[d]) {
      return InvalidArgument("padding {} is more than half of the window of {} pixels",
                             window.padding[d], window.kernel[d]);
    }
  }
  ASSIGN_OR_RETURN(const auto size, OutputSize(window, x[2], x[3], ceil_mode));
  return Shape{x[0], x[1], size[0], size[1]};
}

absl::StatusOr<Shape> UnpooledShape(const Shape& dy, const std::vector<int64_t>& input_size) {
  if (dy.ndim() != 4) {
    return InvalidArgument("dy is {}; wanted an image [n,c,h,w]", dy.ToString());
  }
  if (input_size.size() != 2) {
    return InvalidArgument("input_size has {} numbers; wanted height and width", input_size.size());
  }
  return Shape{dy[0], dy[1], input_size[0], input_size[1]};
}

}  // namespace capstan
