// CUDA kernels: one pass over memory, any order that all arguments share.
#include "ops/cuda/elementwise.cuh"
#include "ops/mul/mul.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

void MulKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  MapFloats<2>(context, outputs, inputs, [] __device__(auto a, auto b) { return a * b; });
}

}  // namespace

std::vector<KernelRow> MulCudaKernels() { return {ElementwiseCudaRow("mul", MulKernel)}; }

}  // namespace capstan
