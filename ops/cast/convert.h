// Conversion of one element, by the rules of cast.h, and the choice of C++ types for a pair of
// element types.
//
//   ForElement(dtype, [&](auto zero) { using T = decltype(zero); ... });
//   Half h = Convert<Half>(0.1);
#pragma once

#include <limits>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/tensor/half.h"

namespace capstan {

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// double or int64_t to a narrower integer.
template <typename To, typename From>
To Saturate(From value) {
  // Both ends of int64_t as doubles: the upper one is rounded up, so it is compared with >=.
  constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::min());
  constexpr auto kHigh = static_cast<From>(std::numeric_limits<To>::max());
  if (value != value) return 0;
  if (value <= kLow) return std::numeric_limits<To>::min();
  if (value >= kHigh) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <typename To, typename From>
To Convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsHalf<From>) {
    return Convert<To>(value.ToFloat());
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (kIsHalf<To>) {
    if constexpr (std::is_same_v<From, float>) return To::From(value);
    return To::From(static_cast<double>(value));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    return Saturate<To>(static_cast<double>(value));
  } else {
    return Saturate<To>(static_cast<int64_t>(value));
  }
}

// Calls f with a value of the C++ type of the element type.
template <typename F>
void ForElement(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f(double{});
    case DType::kF32:
      return f(float{});
    case DType::kF16:
      return f(Half{});
    case DType::kBF16:
      return f(BFloat16{});
    case DType::kI64:
      return f(int64_t{});
    case DType::kI32:
      return f(int32_t{});
    case DType::kU8:
      return f(uint8_t{});
    case DType::kBool:
      return f(bool{});
    case DType::kOpaque:
      break;
  }
  CHECK(false) << "no C++ type for " << NameOf(dtype);
}

}  // namespace capstan
