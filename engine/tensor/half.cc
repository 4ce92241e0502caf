#include "engine/tensor/half.h"

#include <bit>
#include <cmath>

namespace capstan {
namespace {

// Nearest float, but where that is not exact the neighbour with an odd last bit: a later rounding
// to fewer bits then gives what one rounding of the double would give.
float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(value) || static_cast<double>(nearest) == value) {
    return nearest;
  }
  if ((std::bit_cast<uint32_t>(nearest) & 1u) != 0) return nearest;
  const bool above = static_cast<double>(nearest) > value;
  return std::nextafter(nearest, above ? -INFINITY : INFINITY);
}

// `value` without its lowest `drop` bits, rounded to nearest, ties to even.
uint32_t RoundBits(uint32_t value, int drop) {
  const uint32_t half = 1u << (drop - 1);
  const uint32_t odd = (value >> drop) & 1u;
  return (value + half - 1 + odd) >> drop;
}

}  // namespace

Half Half::From(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const auto with_sign = [&](uint32_t m) { return Half{static_cast<uint16_t>(sign | m)}; };
  if (magnitude > 0x7F800000u) return with_sign(0x7E00u);
  // 65520 and above round to infinity.
  if (magnitude >= 0x477FF000u) return with_sign(0x7C00u);
  // Normal numbers begin at 2^-14; the exponents' biases differ by 112.
  if (magnitude >= 0x38800000u) return with_sign(RoundBits(magnitude - (112u << 23), 13));
  // Below 2^-25, half of the smallest subnormal, everything is zero.
  if (magnitude <= 0x33000000u) return with_sign(0);
  const int exponent = static_cast<int>(magnitude >> 23);
  const uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  return with_sign(RoundBits(mantissa, 126 - exponent));
}

Half Half::From(double value) { return From(RoundToOdd(value)); }

float Half::ToFloat() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 31u, mantissa = bits & 0x3FFu;
  if (exponent == 0) {
    const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -subnormal : subnormal;
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

BFloat16 BFloat16::From(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // Rounding could carry a NaN's mantissa away.
  if (std::isnan(value)) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  const uint32_t odd = bits >> 16 & 1u;
  return {static_cast<uint16_t>((bits + 0x7FFFu + odd) >> 16)};
}

BFloat16 BFloat16::From(double value) { return From(RoundToOdd(value)); }

float BFloat16::ToFloat() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace capstan
