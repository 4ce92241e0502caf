// Reference kernel: plain loops in logical order.
#include "engine/kernel/strided.h"
#include "ops/dropout/dropout.h"

namespace capstan {
namespace {

void DropoutKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape& shape = outputs[0].type.shape;
  const DropoutMask mask(context, attrs.As<DropoutAttrs>(), shape);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    const T scale = static_cast<T>(mask.scale());
    ForEachIndex(shape, [&](const Index& i) {
      y(i) = x(i) * (mask.Keeps(mask.DrawOf(i)) ? scale : zero);  // a NaN stays one
    });
  });
}

}  // namespace

std::vector<KernelRow> DropoutReferenceKernels() {
  return {{.op = "dropout", .fn = DropoutKernel}};
}

}  // namespace capstan
