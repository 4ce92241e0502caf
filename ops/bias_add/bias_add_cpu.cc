// Reference kernels: plain loops in logical order.
#include "engine/kernel/strided.h"
#include "ops/bias_add/bias_add.h"

namespace capstan {
namespace {

void BiasAddKernel(KernelContext&, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const auto axis = static_cast<size_t>(BiasAxis(attrs, inputs[0].type.ndim()));
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), bias(inputs[1]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = x(i) + bias(i[axis]); });
  });
}

void BiasAddGradKernel(KernelContext&, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape& shape = inputs[0].type.shape;
  const int axis = BiasAxis(attrs, shape.ndim());
  Shape one_slice = shape;
  one_slice[axis] = 1;
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> dy(inputs[0]);
    const Strided<T> dbias(outputs[0]);
    for (int64_t c = 0; c < shape[axis]; ++c) {
      double sum = 0;
      ForEachIndex(one_slice, [&](Index i) {
        i[static_cast<size_t>(axis)] = c;
        sum += double(dy(i));
      });
      dbias(c) = static_cast<T>(sum);
    }
  });
}

}  // namespace

std::vector<KernelRow> BiasAddReferenceKernels() {
  return {{.op = "bias_add", .fn = BiasAddKernel},
          {.op = "bias_add_grad", .fn = BiasAddGradKernel}};
}

}  // namespace capstan
