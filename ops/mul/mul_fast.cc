// Vectorised kernel over memory order, for arguments of one memory format.
#include "engine/kernel/flat.h"
#include "ops/mul/mul.h"

namespace capstan {
namespace {

void MulKernel(KernelContext& context, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct&) {
  const float *a = inputs[0].Data<float>(), *b = inputs[1].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
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
           .supports = InOneOrder,
           .fn = MulKernel}};
}

}  // namespace capstan
