// Reference kernels: plain loops, summed in double.
#include "engine/kernel/strided.h"
#include "ops/avg_pool/avg_pool.h"

namespace capstan {
namespace {

void AvgPoolKernel(KernelContext&, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape& image = inputs[0].type.shape;
  const AvgWindows windows(attrs.As<AvgPoolAttrs>(), image[2], image[3]);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
      const PixelRange rows = windows.Inside(0, i[2]), columns = windows.Inside(1, i[3]);
      double sum = 0;
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) sum += x(i[0], i[1], h, w);
      }
      y(i) = static_cast<T>(sum / static_cast<double>(windows.Divisor(i[2], i[3])));
    });
  });
}

void AvgPoolGradKernel(KernelContext&, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape& image = outputs[0].type.shape;
  const AvgWindows windows(attrs.As<AvgPoolGradAttrs>(), image[2], image[3]);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> dy(inputs[0]);
    const Strided<T> dx(outputs[0]);
    const HostTensor sums({DType::kF64, image});
    const Strided<double> sum(sums.view());
    ForEachIndex(inputs[0].type.shape, [&](const Index& i) {
      const PixelRange rows = windows.Inside(0, i[2]), columns = windows.Inside(1, i[3]);
      const double share = double(dy(i)) / static_cast<double>(windows.Divisor(i[2], i[3]));
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) sum(i[0], i[1], h, w) += share;
      }
    });
    ForEachIndex(image, [&](const Index& i) { dx(i) = static_cast<T>(sum(i)); });
  });
}

}  // namespace

std::vector<KernelRow> AvgPoolReferenceKernels() {
  return {{.op = "avg_pool", .fn = AvgPoolKernel},
          {.op = "avg_pool_grad", .fn = AvgPoolGradKernel}};
}

}  // namespace capstan
