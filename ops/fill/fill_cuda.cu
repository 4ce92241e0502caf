// CUDA kernels.
#include "engine/tensor/half.h"
#include "ops/cuda/launch.cuh"
#include "ops/fill/fill.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename T>
__global__ void FillElements(int64_t n, T value, T* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) y[i] = value;
}

void FillKernel(KernelContext& context, Views outputs, Views, const AnyStruct& any) {
  const double value = any.As<FillAttrs>().value;
  const TensorView& y = outputs[0];
  const auto fill = [&](auto element) {
    using T = decltype(element);
    const int64_t n = y.type.count();
    Launch(context, BlocksFor(n), kBlock, FillElements<T>, n, element, CudaData<T>(y));
  };
  switch (y.type.dtype) {
    case DType::kF64:
      return fill(value);
    case DType::kF32:
      return fill(static_cast<float>(value));
    case DType::kF16:
      return fill(Half::From(value));
    case DType::kBF16:
      return fill(BFloat16::From(value));
    case DType::kI64:
      return fill(static_cast<int64_t>(value));
    case DType::kI32:
      return fill(static_cast<int32_t>(value));
    default:
      return fill(static_cast<uint8_t>(y.type.dtype == DType::kBool ? value != 0 : value));
  }
}

}  // namespace

std::vector<KernelRow> FillCudaKernels() {
  return {{.op = "fill",
           .device = DeviceKind::kCuda,
           .impl = "cuda",
           .priority = 10,
           .dtypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kU8, DType::kBool},
           .fn = FillKernel}};
}

}  // namespace capstan
