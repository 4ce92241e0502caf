// Reference kernels: plain loops in logical order.
#include "engine/kernel/strided.h"
#include "ops/clamp/clamp.h"

namespace capstan {
namespace {

void ClampKernel(KernelContext&, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClampAttrs>();
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T low = static_cast<T>(attrs.min), high = static_cast<T>(attrs.max);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    // A NaN fails both comparisons and passes.
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
      const T v = x(i);
      y(i) = v < low ? low : v > high ? high : v;
    });
  });
}

void ClampGradKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClampAttrs>();
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T low = static_cast<T>(attrs.min), high = static_cast<T>(attrs.max);
    const Strided<const T> x(inputs[0]), dy(inputs[1]);
    const Strided<T> dx(outputs[0]);
    ForEachIndex(outputs[0].type.shape,
                 [&](const Index& i) { dx(i) = x(i) >= low && x(i) <= high ? dy(i) : zero; });
  });
}

}  // namespace

std::vector<KernelRow> ClampReferenceKernels() {
  return {{.op = "clamp", .fn = ClampKernel}, {.op = "clamp_grad", .fn = ClampGradKernel}};
}

}  // namespace capstan
