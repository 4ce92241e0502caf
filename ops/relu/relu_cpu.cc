// Reference kernels: plain loops in logical order.
#include <algorithm>

#include "engine/kernel/strided.h"
#include "ops/relu/relu.h"

namespace capstan {
namespace {

void ReluKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = std::max(x(i), zero); });
  });
}

void ReluGradKernel(KernelContext&, std::span<const TensorView> outputs,
                    std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> y(inputs[0]), dy(inputs[1]);
    const Strided<T> dx(outputs[0]);
    ForEachIndex(outputs[0].type.shape,
                 [&](const Index& i) { dx(i) = y(i) > zero ? dy(i) : zero; });
  });
}

}  // namespace

std::vector<KernelRow> ReluReferenceKernels() {
  return {{.op = "relu", .fn = ReluKernel}, {.op = "relu_grad", .fn = ReluGradKernel}};
}

}  // namespace capstan
