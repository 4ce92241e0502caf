// Reference kernels. Buckets are flat, so memory order is the logical order.
#include "engine/kernel/strided.h"
#include "ops/layerwise/layerwise_step.h"

namespace capstan {
namespace {

template <template <typename> class Step>
void UpdateKernel(KernelContext&, std::span<const TensorView> outputs,
                  std::span<const TensorView> inputs, const AnyStruct& any) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& attrs = any.As<typename Step<T>::Attrs>();
    const auto step = StepOf<Step<T>>(outputs, inputs, attrs);
    int64_t begin = 0;
    for (const int64_t end : attrs.segment_ends) {
      double weights = 0, steps = 0;
      for (int64_t i = begin; i < end; ++i) step.Prepare(i, &weights, &steps);
      const T rate = step.RateOf(weights, steps);
      for (int64_t i = begin; i < end; ++i) step.Apply(i, rate);
      begin = end;
    }
  });
}

}  // namespace

std::vector<KernelRow> LayerwiseReferenceKernels() {
  return {{.op = "lamb_update", .fn = UpdateKernel<LambStep>},
          {.op = "lars_update", .fn = UpdateKernel<LarsStep>}};
}

}  // namespace capstan
