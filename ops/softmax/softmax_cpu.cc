// Reference kernels: plain loops in logical order.
#include <algorithm>
#include <cmath>

#include "engine/kernel/strided.h"
#include "ops/softmax/softmax.h"

namespace capstan {
namespace {

// Calls f(row) for every row along the last dimension; row(k) is the index of its element k.
template <typename F>
void ForEachRow(const Shape& shape, F&& f) {
  const auto last = static_cast<size_t>(shape.ndim() - 1);
  Shape rows = shape;
  rows[shape.ndim() - 1] = 1;
  ForEachIndex(rows, [&](const Index& begin) {
    f([&](int64_t k) {
      Index at = begin;
      at[last] = k;
      return at;
    });
  });
}

void SoftmaxKernel(KernelContext&, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct&) {
  const Shape& shape = outputs[0].type.shape;
  const int64_t classes = shape[shape.ndim() - 1];
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    ForEachRow(shape, [&](auto row) {
      double greatest = x(row(0)), sum = 0;
      for (int64_t k = 1; k < classes; ++k) greatest = std::max(greatest, double(x(row(k))));
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(double(x(row(k))) - greatest);
      for (int64_t k = 0; k < classes; ++k) {
        y(row(k)) = static_cast<T>(std::exp(double(x(row(k))) - greatest) / sum);
      }
    });
  });
}

void SoftmaxGradKernel(KernelContext&, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  const Shape& shape = outputs[0].type.shape;
  const int64_t classes = shape[shape.ndim() - 1];
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> y(inputs[0]), dy(inputs[1]);
    const Strided<T> dx(outputs[0]);
    ForEachRow(shape, [&](auto row) {
      double dot = 0;
      for (int64_t k = 0; k < classes; ++k) dot += double(y(row(k))) * double(dy(row(k)));
      for (int64_t k = 0; k < classes; ++k) {
        dx(row(k)) = static_cast<T>(double(y(row(k))) * (double(dy(row(k))) - dot));
      }
    });
  });
}

}  // namespace

std::vector<KernelRow> SoftmaxReferenceKernels() {
  return {{.op = "softmax", .fn = SoftmaxKernel}, {.op = "softmax_grad", .fn = SoftmaxGradKernel}};
}

}  // namespace capstan
