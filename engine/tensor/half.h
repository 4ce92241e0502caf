// 16-bit float storage: IEEE half precision (f16) and bfloat16 (bf16). For storage and conversion
// only; arithmetic is done in float or double.
//
// Conversions to 16 bits round to the nearest value, ties to even; overflow gives infinity, a NaN
// stays a (quiet) NaN. From double there is one rounding, not two.
//
//   Half h = Half::From(0.1);
//   float f = h.ToFloat();
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace capstan {

struct Half {
  uint16_t bits = 0;

  static Half From(float value);
  static Half From(double value);
  float ToFloat() const;
};

struct BFloat16 {
  uint16_t bits = 0;

  static BFloat16 From(float value);
  static BFloat16 From(double value);
  float ToFloat() const;
};

template <>
constexpr DType DTypeOf<Half>() {
  return DType::kF16;
}
template <>
constexpr DType DTypeOf<BFloat16>() {
  return DType::kBF16;
}

}  // namespace capstan
