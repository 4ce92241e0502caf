// Reference kernels: plain loops, summed in double.
#include "engine/kernel/strided.h"
#include "ops/global_avg_pool/global_avg_pool.h"

namespace capstan {
namespace {

void PoolKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    const int64_t height = inputs[0].type.shape[2], width = inputs[0].type.shape[3];
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
      double sum = 0;
      for (int64_t h = 0; h < height; ++h) {
        for (int64_t w = 0; w < width; ++w) sum += x(i[0], i[1], h, w);
      }
      y(i) = static_cast<T>(sum / static_cast<double>(height * width));
    });
  });
}

void GradKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> dy(inputs[0]);
    const Strided<T> dx(outputs[0]);
    const Shape& shape = outputs[0].type.shape;
    const auto pixels = static_cast<T>(shape[2] * shape[3]);
    ForEachIndex(shape, [&](const Index& i) { dx(i) = dy(i[0], i[1], 0, 0) / pixels; });
  });
}

}  // namespace

std::vector<KernelRow> GlobalAvgPoolReferenceKernels() {
  return {{.op = "global_avg_pool", .fn = PoolKernel},
          {.op = "global_avg_pool_grad", .fn = GradKernel}};
}

}  // namespace capstan
