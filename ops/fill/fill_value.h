// The element that a fill writes, for kernels of any device.
//
//   WithFillValue(y.type.dtype, attrs.value, [&](auto element) { ... });
#pragma once

#include "engine/base/check.h"
#include "engine/tensor/half.h"

namespace capstan {

// Calls f with `value` in the C++ type of the element type.
template <typename F>
void WithFillValue(DType dtype, double value, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f(value);
    case DType::kF32:
      return f(static_cast<float>(value));
    case DType::kF16:
      return f(Half::From(value));
    case DType::kBF16:
      return f(BFloat16::From(value));
    case DType::kI64:
      return f(static_cast<int64_t>(value));
    case DType::kI32:
      return f(static_cast<int32_t>(value));
    case DType::kU8:
      return f(static_cast<uint8_t>(value));
    case DType::kBool:
      return f(value != 0);
    case DType::kOpaque:
      break;
  }
  CHECK(false) << "fill of " << NameOf(dtype);
}

}  // namespace capstan
