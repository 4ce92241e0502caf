// CUDA kernels.
#include "ops/adam/adam_step.h"
#include "ops/cuda/update.cuh"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
__global__ void Update(int64_t n, AdamUpdateAttrs attrs, AdamDecay decay, DeviceScalar lr,
                       const int64_t* iteration, DeviceScalar scale, const T* w, const T* g,
                       const T* m, const T* v, T* new_w, T* new_m, T* new_v) {
  const AdamStep<T> step(attrs, decay, lr.Read(), *iteration, scale.Read());
  ForEachOnGrid(n,
                [&](int64_t i) { step(w[i], g[i], m[i], v[i], &new_w[i], &new_m[i], &new_v[i]); });
}

template <AdamDecay kDecay>
void AdamKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const int64_t n = outputs[0].type.count();
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(n), kBlock, Update<T>, n, any.As<AdamUpdateAttrs>(), kDecay,
           DeviceScalar(inputs, 4), CudaData<const int64_t>(inputs[5]), DeviceScalar(inputs, 6),
           CudaData<const T>(inputs[0]), CudaData<const T>(inputs[1]), CudaData<const T>(inputs[2]),
           CudaData<const T>(inputs[3]), CudaData<T>(outputs[0]), CudaData<T>(outputs[1]),
           CudaData<T>(outputs[2]));
  });
}

}  // namespace

std::vector<KernelRow> AdamCudaKernels() {
  return {UpdateCudaRow("adam_update", AdamKernel<AdamDecay::kCoupled>),
          UpdateCudaRow("adamw_update", AdamKernel<AdamDecay::kDecoupled>)};
}

}  // namespace capstan
