// Reference kernels: plain loops in logical order.
#include "engine/kernel/strided.h"
#include "ops/scale/scale.h"

namespace capstan {
namespace {

void ScaleKernel(KernelContext&, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const T factor = *inputs[1].Data<T>();
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = x(i) * factor; });
  });
}

void ScaleFactorGradKernel(KernelContext&, std::span<const TensorView> outputs,
                           std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), dy(inputs[1]);
    double sum = 0;
    ForEachIndex(inputs[0].type.shape,
                 [&](const Index& i) { sum += double(x(i)) * double(dy(i)); });
    *outputs[0].Data<T>() = static_cast<T>(sum);
  });
}

}  // namespace

std::vector<KernelRow> ScaleReferenceKernels() {
  return {{.op = "scale", .fn = ScaleKernel},
          {.op = "scale_factor_grad", .fn = ScaleFactorGradKernel}};
}

}  // namespace capstan
