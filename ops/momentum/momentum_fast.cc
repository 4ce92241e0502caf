// Vectorised kernel on all threads.
#include "engine/kernel/flat.h"
#include "ops/momentum/momentum_step.h"

namespace capstan {
namespace {

void MomentumKernel(KernelContext& context, std::span<const TensorView> outputs,
                    std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const MomentumStep<float> step(inputs, attrs);
  const float *w = inputs[0].Data<float>(), *g = inputs[1].Data<float>();
  const float* v = inputs[2].Data<float>();
  float *new_w = outputs[0].Data<float>(), *new_v = outputs[1].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) step(w[i], g[i], v[i], &new_w[i], &new_v[i]);
  });
}

}  // namespace

std::vector<KernelRow> MomentumFastKernels() {
  return {{.op = "momentum_update",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .fn = MomentumKernel}};
}

}  // namespace capstan
