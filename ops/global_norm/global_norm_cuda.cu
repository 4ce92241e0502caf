// CUDA kernels.
#include "ops/cuda/total.cuh"
#include "ops/global_norm/global_norm.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
struct Square {
  const T* x;
  __device__ double operator()(int64_t i) const {
    const double v = Load(x[i]);
    return v * v;
  }
};

void SquaredNormKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  auto* parts = static_cast<double*>(context.workspace);
  const auto buckets = static_cast<int64_t>(inputs.size());
  ForCudaFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < buckets; ++i) {
      const TensorView& x = inputs[static_cast<size_t>(i)];
      AddTerms(context, x.type.count(), Square<T>{CudaData<const T>(x)}, parts + i * kTotalParts);
    }
    WriteTotal(context, buckets * kTotalParts, parts, CudaData<T>(outputs[0]));
  });
}

int64_t SquaredNormWorkspace(const OpCall& call, const void*) {
  return TotalBytes(call.inputs.size());
}

template <typename T>
__global__ void ScaleOf(double max_norm, const T* squared, T* scale) {
  const double norm = sqrt(static_cast<double>(Load(*squared)));
  // A NaN norm gives a NaN.
  *scale = static_cast<T>(max_norm / (norm <= max_norm ? max_norm : norm));
}

void ClipScaleKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  ForCudaFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, 1, 1, ScaleOf<T>, any.As<ClipScaleAttrs>().max_norm,
           CudaData<const T>(inputs[0]), CudaData<T>(outputs[0]));
  });
}

}  // namespace

std::vector<KernelRow> GlobalNormCudaKernels() {
  KernelRow norm = CudaRow("squared_norm", SquaredNormKernel);
  norm.workspace_bytes = SquaredNormWorkspace;
  return {norm, CudaRow("clip_scale", ClipScaleKernel)};
}

}  // namespace capstan
