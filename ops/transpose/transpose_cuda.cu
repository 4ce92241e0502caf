// CUDA kernels.
#include "ops/cuda/move.cuh"
#include "ops/transpose/transpose.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

void TransposeKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& perm = any.As<TransposeAttrs>().perm;
  const TensorView &x = inputs[0], &y = outputs[0];
  const auto strides = x.type.Strides();
  DeviceStrides x_strides;
  for (size_t d = 0; d < perm.size(); ++d) {
    x_strides.stride[d] = strides[static_cast<size_t>(perm[d])];
  }
  const DeviceShape shape(y.type.shape);
  Move(context, SizeOf(x.type.dtype), x.type.count(), shape, DeviceStrides(y.type), shape,
       x_strides, x.data, y.data);
}

}  // namespace

std::vector<KernelRow> TransposeCudaKernels() {
  KernelRow row = CudaRow("transpose", TransposeKernel);
  row.dtypes = kCudaMovableTypes;
  return {row};
}

}  // namespace capstan
