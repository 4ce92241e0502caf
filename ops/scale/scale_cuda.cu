// CUDA kernels: one pass over memory, any order that all arguments share.
#include "ops/cuda/elementwise.cuh"
#include "ops/scale/scale.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

void ScaleKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* factor = CudaData<const T>(inputs[1]);
    const MapArguments<T, 1> a{{CudaData<const T>(inputs[0])}, CudaData<T>(outputs[0])};
    Map(context, outputs[0].type.count(), a,
        [factor] __device__(Wide<T> x) { return x * Load(*factor); });
  });
}

}  // namespace

std::vector<KernelRow> ScaleCudaKernels() { return {ElementwiseCudaRow("scale", ScaleKernel)}; }

}  // namespace capstan
