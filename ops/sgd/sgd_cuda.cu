// CUDA kernels.
#include "ops/cuda/update.cuh"
#include "ops/sgd/sgd_step.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
__global__ void Update(int64_t n, SgdUpdateAttrs attrs, DeviceScalar lr, DeviceScalar scale,
                       const T* w, const T* g, T* new_w) {
  const SgdStep<T> step(attrs, lr.Read(), scale.Read());
  ForEachOnGrid(n, [&](int64_t i) { new_w[i] = step(w[i], g[i]); });
}

void SgdKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const int64_t n = outputs[0].type.count();
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(n), kBlock, Update<T>, n, any.As<SgdUpdateAttrs>(),
           DeviceScalar(inputs, 2), DeviceScalar(inputs, 3), CudaData<const T>(inputs[0]),
           CudaData<const T>(inputs[1]), CudaData<T>(outputs[0]));
  });
}

}  // namespace

std::vector<KernelRow> SgdCudaKernels() { return {UpdateCudaRow("sgd_update", SgdKernel)}; }

}  // namespace capstan
