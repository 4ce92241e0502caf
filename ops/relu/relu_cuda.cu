// CUDA kernels: one pass over memory, any order that all arguments share.
#include "ops/cuda/elementwise.cuh"
#include "ops/relu/relu.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Written so that a NaN passes.
void ReluKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  MapFloats<1>(context, outputs, inputs,
               [] __device__(auto x) { return x < 0 ? decltype(x){0} : x; });
}

void ReluGradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  MapFloats<2>(context, outputs, inputs,
               [] __device__(auto y, auto dy) { return y > 0 ? dy : decltype(dy){0}; });
}

}  // namespace

std::vector<KernelRow> ReluCudaKernels() {
  return {ElementwiseCudaRow("relu", ReluKernel), ElementwiseCudaRow("relu_grad", ReluGradKernel)};
}

}  // namespace capstan
