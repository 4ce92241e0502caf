// Reference kernels. Saved: an int32 for each output, in logical order: the winner's h * width + w.
#include <cmath>

#include "engine/kernel/strided.h"
#include "ops/max_pool/max_pool.h"

namespace capstan {
namespace {

void MaxPoolKernel(KernelContext&, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const absl::StatusOr<Window> window = PoolWindow(attrs.As<PoolAttrs>());
  CHECK_OK(window);
  auto* saved = static_cast<int32_t*>(outputs[1].data);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    const int64_t height = inputs[0].type.shape[2], width = inputs[0].type.shape[3];
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
      const PixelRange rows = window->Inside(0, i[2], height);
      const PixelRange columns = window->Inside(1, i[3], width);
      T best = zero;
      int32_t winner = -1;
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          const T value = x(i[0], i[1], h, w);
          if (winner < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
            best = value;
            winner = static_cast<int32_t>(h * width + w);
          }
        }
      }
      y(i) = best;
      *saved++ = winner;
    });
  });
}

void MaxPoolGradKernel(KernelContext&, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  const auto* saved = static_cast<const int32_t*>(inputs[1].data);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> dy(inputs[0]);
    const Strided<T> dx(outputs[0]);
    const int64_t width = outputs[0].type.shape[3];
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { dx(i) = zero; });
    ForEachIndex(inputs[0].type.shape, [&](const Index& i) {
      const int64_t winner = *saved++;
      dx(i[0], i[1], winner / width, winner % width) += dy(i);
    });
  });
}

}  // namespace

std::vector<KernelRow> MaxPoolReferenceKernels() {
  return {{.op = "max_pool", .fn = MaxPoolKernel},
          {.op = "max_pool_grad", .fn = MaxPoolGradKernel}};
}

}  // namespace capstan
