// Reference kernel: plain loops in logical order, every pair of types.
#include "engine/kernel/strided.h"
#include "ops/cast/cast.h"
#include "ops/cast/convert.h"

namespace capstan {
namespace {

void CastKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  ForElement(inputs[0].type.dtype, [&](auto from) {
    using From = decltype(from);
    ForElement(outputs[0].type.dtype, [&](auto to) {
      using To = decltype(to);
      const Strided<const From> x(inputs[0]);
      const Strided<To> y(outputs[0]);
      ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = Convert<To>(x(i)); });
    });
  });
}

}  // namespace

std::vector<KernelRow> CastReferenceKernels() {
  return {{.op = "cast",
           .dtypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kU8, DType::kBool},
           .fn = CastKernel}};
}

}  // namespace capstan
