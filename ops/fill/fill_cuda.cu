// CUDA kernels.
#include "ops/cuda/launch.cuh"
#include "ops/fill/fill.h"
#include "ops/fill/fill_value.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
__global__ void FillElements(int64_t n, T value, T* y) {
  ForEachOnGrid(n, [&](int64_t i) { y[i] = value; });
}

void FillKernel(KernelContext& context, Views outputs, Views, const AnyStruct& any) {
  const TensorView& y = outputs[0];
  const int64_t n = y.type.count();
  WithFillValue(y.type.dtype, any.As<FillAttrs>().value, [&](auto element) {
    using T = decltype(element);
    Launch(context, BlocksFor(n), kBlock, FillElements<T>, n, element, CudaData<T>(y));
  });
}

}  // namespace

std::vector<KernelRow> FillCudaKernels() {
  KernelRow row = CudaRow("fill", FillKernel);
  row.dtypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                DType::kI64, DType::kI32, DType::kU8,  DType::kBool};
  return {row};
}

}  // namespace capstan
