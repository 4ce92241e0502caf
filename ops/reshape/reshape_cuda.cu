// CUDA kernels.
#include "ops/cuda/move.cuh"
#include "ops/reshape/reshape.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

void ReshapeKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const TensorView &x = inputs[0], &y = outputs[0];
  Move(context, SizeOf(x.type.dtype), x.type.count(), DeviceShape(y.type.shape),
       DeviceStrides(y.type), DeviceShape(x.type.shape), DeviceStrides(x.type), x.data, y.data);
}

}  // namespace

std::vector<KernelRow> ReshapeCudaKernels() {
  KernelRow row = CudaRow("reshape", ReshapeKernel);
  row.dtypes = kCudaMovableTypes;
  return {row};
}

}  // namespace capstan
