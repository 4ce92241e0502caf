// Reference kernel.
#include "engine/kernel/strided.h"
#include "ops/moving_average/average_step.h"
#include "ops/moving_average/moving_average.h"

namespace capstan {
namespace {

void EmaKernel(KernelContext&, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct& any) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const AverageStep<T> step(any.As<EmaUpdateAttrs>().decay);
    const Strided<const T> a(inputs[0]), w(inputs[1]);
    const Strided<T> new_a(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { new_a(i) = step(a(i), w(i)); });
  });
}

}  // namespace

std::vector<KernelRow> MovingAverageReferenceKernels() {
  return {{.op = "ema_update", .fn = EmaKernel}};
}

}  // namespace capstan
