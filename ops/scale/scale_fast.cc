// Vectorised kernel over memory order.
#include "engine/kernel/flat.h"
#include "ops/scale/scale.h"

namespace capstan {
namespace {

void ScaleKernel(KernelContext& context, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const AnyStruct&) {
  const float* x = inputs[0].Data<float>();
  const float factor = *inputs[1].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] * factor;
  });
}

}  // namespace

std::vector<KernelRow> ScaleFastKernels() {
  return {{.op = "scale",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = InOneOrder,
           .fn = ScaleKernel}};
}

}  // namespace capstan
