#include "ops/pool/window.h"

#include "engine/base/status.h"

namespace capstan {
namespace {

absl::Status Take(const char* name, const std::vector<int64_t>& from, int64_t least,
                  std::array<int64_t, 2>* to) {
  if (from.size() != 2) {
    return InvalidArgument("{} has {} number{}; wanted two, height and width", name, from.size(),
                           from.size() == 1 ? "" : "s");
  }
  for (size_t d = 0; d < 2; ++d) {
    if (from[d] < least) {
      return InvalidArgument("{} {} is too small; the least is {}", name, from[d], least);
    }
    (*to)[d] = from[d];
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Window> MakeWindow(const std::vector<int64_t>& kernel,
                                  const std::vector<int64_t>& stride,
                                  const std::vector<int64_t>& padding,
                                  const std::vector<int64_t>& dilation) {
  Window w;
  RETURN_IF_ERROR(Take("kernel", kernel, 1, &w.kernel));
  RETURN_IF_ERROR(Take("stride", stride, 1, &w.stride));
  RETURN_IF_ERROR(Take("padding", padding, 0, &w.padding));
  RETURN_IF_ERROR(Take("dilation", dilation, 1, &w.dilation));
  return w;
}

absl::StatusOr<std::array<int64_t, 2>> OutputSize(const Window& window, int64_t height,
                                                  int64_t width, bool ceil_mode) {
  const std::array<int64_t, 2> in = {height, width};
  std::array<int64_t, 2> out{};
  for (size_t d = 0; d < 2; ++d) {
    if (in[d] < 1) return InvalidArgument("the image of {} x {} has no pixels", height, width);
    const int64_t room = in[d] + 2 * window.padding[d] - window.Reach(d);
    if (room < 0) {
      return InvalidArgument(
          "the window spans {} pixels of {}, which is larger than the image: {}, with padding {}",
          window.Reach(d), d == 0 ? "height" : "width", in[d], in[d] + 2 * window.padding[d]);
    }
    out[d] = (room + (ceil_mode ? window.stride[d] - 1 : 0)) / window.stride[d] + 1;
    if (ceil_mode && window.Begin(d, out[d] - 1) >= in[d]) --out[d];
  }
  return out;
}

}  // namespace capstan
