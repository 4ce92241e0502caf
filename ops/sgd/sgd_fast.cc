// Vectorised kernel on all threads.
#include "engine/kernel/flat.h"
#include "ops/sgd/sgd_step.h"

namespace capstan {
namespace {

void SgdKernel(KernelContext& context, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const SgdStep<float> step(inputs, attrs);
  const float *w = inputs[0].Data<float>(), *g = inputs[1].Data<float>();
  float* new_w = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) new_w[i] = step(w[i], g[i]);
  });
}

}  // namespace

std::vector<KernelRow> SgdFastKernels() {
  return {{.op = "sgd_update",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .fn = SgdKernel}};
}

}  // namespace capstan
