// Reference kernel.
#include "engine/kernel/strided.h"
#include "ops/momentum/momentum_step.h"

namespace capstan {
namespace {

void MomentumKernel(KernelContext&, std::span<const TensorView> outputs,
                    std::span<const TensorView> inputs, const AnyStruct& attrs) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MomentumStep<T> step(inputs, attrs);
    const Strided<const T> w(inputs[0]), g(inputs[1]), v(inputs[2]);
    const Strided<T> new_w(outputs[0]), new_v(outputs[1]);
    ForEachIndex(outputs[0].type.shape,
                 [&](const Index& i) { step(w(i), g(i), v(i), &new_w(i), &new_v(i)); });
  });
}

}  // namespace

std::vector<KernelRow> MomentumReferenceKernels() {
  return {{.op = "momentum_update", .fn = MomentumKernel}};
}

}  // namespace capstan
