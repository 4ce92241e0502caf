// CUDA kernels: one pass over memory, any order that all arguments share.
#include "ops/clamp/clamp.h"
#include "ops/cuda/elementwise.cuh"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

void ClampKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClampAttrs>();
  const double low = attrs.min, high = attrs.max;
  // A NaN fails both comparisons and passes.
  MapFloats<1>(context, outputs, inputs, [=] __device__(auto x) {
    const auto l = static_cast<decltype(x)>(low), h = static_cast<decltype(x)>(high);
    return x < l ? l : x > h ? h : x;
  });
}

void ClampGradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClampAttrs>();
  const double low = attrs.min, high = attrs.max;
  MapFloats<2>(context, outputs, inputs, [=] __device__(auto x, auto dy) {
    const auto l = static_cast<decltype(x)>(low), h = static_cast<decltype(x)>(high);
    return x >= l && x <= h ? dy : decltype(dy){0};
  });
}

}  // namespace

std::vector<KernelRow> ClampCudaKernels() {
  return {ElementwiseCudaRow("clamp", ClampKernel),
          ElementwiseCudaRow("clamp_grad", ClampGradKernel)};
}

}  // namespace capstan
