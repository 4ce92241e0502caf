// CUDA kernel: the draws of the other kernels, with key and sample from the values of the run.
#include "engine/kernel/flat.h"
#include "ops/cuda/elementwise.cuh"
#include "ops/dropout/draw_loops.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Grid: any; threads stride over groups of kSize elements in memory order, which lie in one run of
// the innermost loop. Bound by arithmetic: a Philox block for each element.
template <typename T, int kSize>
__global__ void Drop(int64_t groups, DropoutMask planned, DrawLoops loops, const RunValues* values,
                     const T* x, T* y) {
  DropoutMask mask = planned;
  mask.MoveTo(*values);
  const auto scale = static_cast<Wide<T>>(mask.scale());
  const auto stride = static_cast<uint64_t>(loops.innermost().stride);
  ForEachOnGrid(groups, [&](int64_t i) {
    const uint64_t draw = mask.first() + loops.At(i * kSize);
    auto v = reinterpret_cast<const Vector<T, kSize>*>(x)[i];
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      // A NaN stays one.
      const bool keeps = mask.Keeps(draw + static_cast<uint64_t>(e) * stride);
      v.at[e] = Store<T>(Load(v.at[e]) * (keeps ? scale : Wide<T>{0}));
    }
    reinterpret_cast<Vector<T, kSize>*>(y)[i] = v;
  });
}

void DropoutKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& attrs) {
  const TensorView &x = inputs[0], &y = outputs[0];
  const int64_t n = y.type.count();
  if (n == 0) return;
  const DropoutMask mask(context, attrs.As<DropoutAttrs>(), y.type.shape);
  const DrawLoops loops(y.type, mask);
  const auto places = reinterpret_cast<uintptr_t>(x.data) | reinterpret_cast<uintptr_t>(y.data);
  ForCudaFloat(y.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kSize = kPackSize<T>;
    const bool packs = places % sizeof(Pack<T>) == 0 && loops.innermost().size % kSize == 0;
    const int64_t groups = packs ? n / kSize : n;
    Launch(context, BlocksFor(groups), kBlock, packs ? Drop<T, kSize> : Drop<T, 1>, groups, mask,
           loops, context.run_values, CudaData<const T>(x), CudaData<T>(y));
  });
}

}  // namespace

std::vector<KernelRow> DropoutCudaKernels() {
  KernelRow row = CudaRow("dropout", DropoutKernel);
  row.supports = InOneOrder;
  return {row};
}

}  // namespace capstan
