// Vectorised kernel over memory order: gradients are clamped by value once an update.
#include "engine/kernel/flat.h"
#include "ops/clamp/clamp.h"

namespace capstan {
namespace {

void ClampKernel(KernelContext& context, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClampAttrs>();
  const auto low = static_cast<float>(attrs.min), high = static_cast<float>(attrs.max);
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, outputs[0].type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      // In two steps, each of which is one instruction that passes a NaN.
      const float v = x[i] < low ? low : x[i];
      y[i] = v > high ? high : v;
    }
  });
}

}  // namespace

std::vector<KernelRow> ClampFastKernels() {
  return {{.op = "clamp",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = InOneOrder,
           .fn = ClampKernel}};
}

}  // namespace capstan
