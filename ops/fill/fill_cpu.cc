// The only kernel: every format has the same bytes, so it walks through memory.
#include <algorithm>

#include "engine/kernel/kernel_context.h"
#include "engine/tensor/half.h"
#include "ops/fill/fill.h"

namespace capstan {
namespace {

void FillKernel(KernelContext&, std::span<const TensorView> outputs, std::span<const TensorView>,
                const AnyStruct& any) {
  const double value = any.As<FillAttrs>().value;
  const TensorView& y = outputs[0];
  const auto fill = [&](auto element) {
    std::ranges::fill(y.Elements<decltype(element)>(), element);
  };
  switch (y.type.dtype) {
    case DType::kF64:
      return fill(value);
    case DType::kF32:
      return fill(static_cast<float>(value));
    case DType::kF16:
      return fill(Half::From(value));
    case DType::kBF16:
      return fill(BFloat16::From(value));
    case DType::kI64:
      return fill(static_cast<int64_t>(value));
    case DType::kI32:
      return fill(static_cast<int32_t>(value));
    case DType::kU8:
      return fill(static_cast<uint8_t>(value));
    case DType::kBool:
      return fill(value != 0);
    case DType::kOpaque:
      break;
  }
  CHECK(false) << "fill of " << NameOf(y.type.dtype);
}

}  // namespace

std::vector<KernelRow> FillReferenceKernels() {
  return {{.op = "fill",
           .dtypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kU8, DType::kBool},
           .fn = FillKernel}};
}

}  // namespace capstan
