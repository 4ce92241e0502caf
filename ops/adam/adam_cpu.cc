// Reference kernels.
#include "engine/kernel/strided.h"
#include "ops/adam/adam_step.h"

namespace capstan {
namespace {

template <AdamDecay kDecay>
void AdamKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct& attrs) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const AdamStep<T> step(inputs, attrs, kDecay);
    const Strided<const T> w(inputs[0]), g(inputs[1]), m(inputs[2]), v(inputs[3]);
    const Strided<T> new_w(outputs[0]), new_m(outputs[1]), new_v(outputs[2]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
      step(w(i), g(i), m(i), v(i), &new_w(i), &new_m(i), &new_v(i));
    });
  });
}

}  // namespace

std::vector<KernelRow> AdamReferenceKernels() {
  return {{.op = "adam_update", .fn = AdamKernel<AdamDecay::kCoupled>},
          {.op = "adamw_update", .fn = AdamKernel<AdamDecay::kDecoupled>}};
}

}  // namespace capstan
