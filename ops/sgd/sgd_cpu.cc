// Reference kernel.
#include "engine/kernel/strided.h"
#include "ops/sgd/sgd_step.h"

namespace capstan {
namespace {

void SgdKernel(KernelContext&, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct& attrs) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const SgdStep<T> step(inputs, attrs);
    const Strided<const T> w(inputs[0]), g(inputs[1]);
    const Strided<T> new_w(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { new_w(i) = step(w(i), g(i)); });
  });
}

}  // namespace

std::vector<KernelRow> SgdReferenceKernels() { return {{.op = "sgd_update", .fn = SgdKernel}}; }

}  // namespace capstan
