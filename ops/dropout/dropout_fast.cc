// Kernel over memory order that draws many numbers at a time.
#include <algorithm>
#include <array>

#include "engine/kernel/flat.h"
#include "ops/dropout/draw_loops.h"

namespace capstan {
namespace {

void DropoutKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const TensorType& type = outputs[0].type;
  const DropoutMask mask(context, attrs.As<DropoutAttrs>(), type.shape);
  const DrawLoops loops(type, mask);
  const DrawLoops::Loop run = loops.innermost();
  const auto scale = static_cast<float>(mask.scale());
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, type.count(), kFlatGrain / 4, [&](int64_t begin, int64_t end) {
    std::array<uint32_t, 256> bits;
    for (int64_t i = begin; i < end;) {
      const int64_t n = std::min({end - i, run.size - i % run.size, int64_t{bits.size()}});
      mask.key().UpperBits(mask.first() + loops.At(i), static_cast<uint64_t>(run.stride),
                           std::span(bits).first(static_cast<size_t>(n)));
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) {
        y[i + k] = x[i + k] * (mask.KeepsUpperBits(bits[static_cast<size_t>(k)]) ? scale : 0.f);
      }
      i += n;
    }
  });
}

}  // namespace

std::vector<KernelRow> DropoutFastKernels() {
  return {{.op = "dropout",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = InOneOrder,
           .fn = DropoutKernel}};
}

}  // namespace capstan
