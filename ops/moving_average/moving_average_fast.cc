// Vectorised kernel on all threads.
#include "engine/kernel/flat.h"
#include "ops/moving_average/average_step.h"
#include "ops/moving_average/moving_average.h"

namespace capstan {
namespace {

void EmaKernel(KernelContext& context, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct& any) {
  const AverageStep<float> step(any.As<EmaUpdateAttrs>().decay);
  const float *a = inputs[0].Data<float>(), *w = inputs[1].Data<float>();
  float* new_a = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) new_a[i] = step(a[i], w[i]);
  });
}

}  // namespace

std::vector<KernelRow> MovingAverageFastKernels() {
  return {{.op = "ema_update",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = InOneOrder,
           .fn = EmaKernel}};
}

}  // namespace capstan
