// CUDA kernels: one pass over memory, any order that all arguments share.
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/total.cuh"
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

template <typename T>
struct Product {
  const T *x, *dy;
  __device__ double operator()(int64_t i) const {
    return static_cast<double>(Load(x[i])) * static_cast<double>(Load(dy[i]));
  }
};

void ScaleFactorGradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  auto* parts = static_cast<double*>(context.workspace);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    AddTerms(context, inputs[0].type.count(),
             Product<T>{CudaData<const T>(inputs[0]), CudaData<const T>(inputs[1])}, parts);
    WriteTotal(context, kTotalParts, parts, CudaData<T>(outputs[0]));
  });
}

}  // namespace

std::vector<KernelRow> ScaleCudaKernels() {
  KernelRow grad = CudaRow("scale_factor_grad", ScaleFactorGradKernel);
  grad.supports = [](const OpCall& call) { return SameOrder(call.In(0), call.In(1)); };
  grad.workspace_bytes = [](const OpCall&, const void*) { return TotalBytes(1); };
  return {ElementwiseCudaRow("scale", ScaleKernel), grad};
}

}  // namespace capstan
