// The only kernel: every format has the same bytes, so it walks through memory.
#include <algorithm>

#include "engine/kernel/kernel_context.h"
#include "ops/fill/fill.h"
#include "ops/fill/fill_value.h"

namespace capstan {
namespace {

void FillKernel(KernelContext&, std::span<const TensorView> outputs, std::span<const TensorView>,
                const AnyStruct& any) {
  const TensorView& y = outputs[0];
  WithFillValue(y.type.dtype, any.As<FillAttrs>().value,
                [&](auto element) { std::ranges::fill(y.Elements<decltype(element)>(), element); });
}

}  // namespace

std::vector<KernelRow> FillReferenceKernels() {
  return {{.op = "fill",
           .dtypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kU8, DType::kBool},
           .fn = FillKernel}};
}

}  // namespace capstan
