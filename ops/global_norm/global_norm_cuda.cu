// CUDA kernels.
#include "ops/cuda/reduce.cuh"
#include "ops/global_norm/global_norm.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

constexpr int kParts = 264;  // sums of one bucket, gathered in the workspace

// Grid: kParts blocks; block p writes the sum of squares of its elements.
template <typename T>
__global__ void SumSquares(int64_t n, const T* x, double* parts) {
  __shared__ double shared[kWarp];
  double sum = 0;
  ForEachOnGrid(n, [&](int64_t i) {
    const double v = Load(x[i]);
    sum += v * v;
  });
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// Grid: one block.
template <typename T>
__global__ void SumParts(int64_t n, const double* parts, T* y) {
  __shared__ double shared[kWarp];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += parts[i];
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) *y = static_cast<T>(sum);
}

void SquaredNormKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  auto* parts = static_cast<double*>(context.workspace);
  ForCudaFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Launch(context, kParts, kBlock, SumSquares<T>, inputs[i].type.count(),
             CudaData<const T>(inputs[i]), parts + i * kParts);
    }
    Launch(context, 1, kBlock, SumParts<T>, static_cast<int64_t>(inputs.size()) * kParts, parts,
           CudaData<T>(outputs[0]));
  });
}

int64_t SquaredNormWorkspace(const OpCall& call, const void*) {
  return static_cast<int64_t>(call.inputs.size() * kParts * sizeof(double));
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
