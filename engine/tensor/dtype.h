// Element types. The short names (`f32`) are those of graph text, checkpoints and messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace capstan {

// kOpaque: bytes whose meaning only the kernel that wrote them knows (architecture, section 3).
enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kU8, kBool, kOpaque };

constexpr std::array<const char*, 9> EnumNamesOf(DType) {
  return {"f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool", "opaque"};
}

// Bytes of one element; 1 for kOpaque.
size_t SizeOf(DType dtype);

// "f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool", "opaque".
const char* NameOf(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

constexpr bool IsFloat(DType d) {
  return d == DType::kF64 || d == DType::kF32 || d == DType::kF16 || d == DType::kBF16;
}
constexpr bool IsInteger(DType d) {
  return d == DType::kI64 || d == DType::kI32 || d == DType::kU8;
}

template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<double>() {
  return DType::kF64;
}
template <>
constexpr DType DTypeOf<float>() {
  return DType::kF32;
}
template <>
constexpr DType DTypeOf<int64_t>() {
  return DType::kI64;
}
template <>
constexpr DType DTypeOf<int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType DTypeOf<uint8_t>() {
  return DType::kU8;
}
template <>
constexpr DType DTypeOf<bool>() {
  return DType::kBool;
}

// Machine epsilon of a float type; 0 for the others.
double EpsilonOf(DType dtype);

}  // namespace capstan
