// Vectorised kernels over memory order.
#include "engine/kernel/flat.h"
#include "ops/relu/relu.h"

namespace capstan {
namespace {

void ReluKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
  // Written so that a NaN passes.
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
  });
}

void ReluGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                    std::span<const TensorView> inputs, const AnyStruct&) {
  const float *y = inputs[0].Data<float>(), *dy = inputs[1].Data<float>();
  float* dx = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      // Read in any case: a load under a condition would not be vectorised.
      const float d = dy[i];
      dx[i] = y[i] > 0.f ? d : 0.f;
    }
  });
}

}  // namespace

std::vector<KernelRow> ReluFastKernels() {
  const KernelRow fast = {
      .impl = "fast", .priority = 10, .dtypes = {DType::kF32}, .supports = InOneOrder};
  KernelRow relu = fast, relu_grad = fast;
  relu.op = "relu";
  relu.fn = ReluKernel;
  relu_grad.op = "relu_grad";
  relu_grad.fn = ReluGradKernel;
  return {relu, relu_grad};
}

}  // namespace capstan
