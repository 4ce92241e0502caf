// CUDA kernels.
#include "ops/cuda/update.cuh"
#include "ops/momentum/momentum_step.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
__global__ void Update(int64_t n, MomentumUpdateAttrs attrs, DeviceScalar lr, DeviceScalar scale,
                       const T* w, const T* g, const T* v, T* new_w, T* new_v) {
  const MomentumStep<T> step(attrs, lr.Read(), scale.Read());
  ForEachOnGrid(n, [&](int64_t i) { step(w[i], g[i], v[i], &new_w[i], &new_v[i]); });
}

void MomentumKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const int64_t n = outputs[0].type.count();
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(n), kBlock, Update<T>, n, any.As<MomentumUpdateAttrs>(),
           DeviceScalar(inputs, 3), DeviceScalar(inputs, 4), CudaData<const T>(inputs[0]),
           CudaData<const T>(inputs[1]), CudaData<const T>(inputs[2]), CudaData<T>(outputs[0]),
           CudaData<T>(outputs[1]));
  });
}

}  // namespace

std::vector<KernelRow> MomentumCudaKernels() {
  return {UpdateCudaRow("momentum_update", MomentumKernel)};
}

}  // namespace capstan
