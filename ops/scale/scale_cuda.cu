// CUDA kernels: one pass over memory, any order that all arguments share.
#include "ops/cuda/elementwise.cuh"
#include "ops/scale/scale.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
struct TimesFactor {
  const T* factor;
  __device__ Wide<T> operator()(Wide<T> x) const { return x * Load(*factor); }
};

void ScaleKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MapArguments<T, 1> a{{CudaData<const T>(inputs[0])}, CudaData<T>(outputs[0])};
    Map(context, outputs[0].type.count(), a, TimesFactor<T>{CudaData<const T>(inputs[1])});
  });
}

}  // namespace

std::vector<KernelRow> ScaleCudaKernels() { return {ElementwiseCudaRow("scale", ScaleKernel)}; }

}  // namespace capstan
