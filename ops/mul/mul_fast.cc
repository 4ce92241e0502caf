// Vectorised kernel over memory order, for arguments of one memory format.
#include "ops/mul/mul.h"

namespace capstan {
namespace {

constexpr int64_t kGrain = 16384;

bool SameFormats(const OpCall& call) {
  return SameOrder(call.In(0), call.Out(0)) && SameOrder(call.In(1), call.Out(0));
}

void MulKernel(KernelContext& context, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct&) {
  const float *a = inputs[0].Data<float>(), *b = inputs[1].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = a[i] * b[i];
  });
}

}  // namespace

std::vector<KernelRow> MulFastKernels() {
  return {{.op = "mul",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = SameFormats,
           .fn = MulKernel}};
}

}  // namespace capstan
