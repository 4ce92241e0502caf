// Vectorised kernels on all threads.
#include "engine/kernel/flat.h"
#include "ops/adam/adam_step.h"

namespace capstan {
namespace {

template <AdamDecay kDecay>
void AdamKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const AdamStep<float> step(inputs, attrs, kDecay);
  const float *w = inputs[0].Data<float>(), *g = inputs[1].Data<float>();
  const float *m = inputs[2].Data<float>(), *v = inputs[3].Data<float>();
  float *new_w = outputs[0].Data<float>(), *new_m = outputs[1].Data<float>();
  float* new_v = outputs[2].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      step(w[i], g[i], m[i], v[i], &new_w[i], &new_m[i], &new_v[i]);
    }
  });
}

KernelRow FastRow(const char* op, KernelFn fn) {
  return {.op = op, .impl = "fast", .priority = 10, .dtypes = {DType::kF32}, .fn = fn};
}

}  // namespace

std::vector<KernelRow> AdamFastKernels() {
  return {FastRow("adam_update", AdamKernel<AdamDecay::kCoupled>),
          FastRow("adamw_update", AdamKernel<AdamDecay::kDecoupled>)};
}

}  // namespace capstan
