// Reference kernels: plain loops in logical order.
#include <algorithm>
#include <cmath>

#include "engine/kernel/strided.h"
#include "ops/global_norm/global_norm.h"

namespace capstan {
namespace {

void SquaredNormKernel(KernelContext&, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    double sum = 0;
    for (const TensorView& input : inputs) {
      const Strided<const T> x(input);
      ForEachIndex(input.type.shape, [&](const Index& i) { sum += double(x(i)) * double(x(i)); });
    }
    *outputs[0].Data<T>() = static_cast<T>(sum);
  });
}

void ClipScaleKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const double max_norm = any.As<ClipScaleAttrs>().max_norm;
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const double norm = std::sqrt(double(*inputs[0].Data<T>()));
    // In this order max gives a NaN norm.
    *outputs[0].Data<T>() = static_cast<T>(max_norm / std::max(norm, max_norm));
  });
}

}  // namespace

std::vector<KernelRow> GlobalNormReferenceKernels() {
  return {{.op = "squared_norm", .fn = SquaredNormKernel},
          {.op = "clip_scale", .fn = ClipScaleKernel}};
}

}  // namespace capstan
