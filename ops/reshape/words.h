// Elements as machine words, for rows that move elements of any type without looking at them.
//
//   ForWord(x.type.dtype, [&](auto word) {
//     using W = decltype(word);
//     const Strided<const W> from(AsWords(x));
//   });
#pragma once

#include "engine/kernel/kernel_row.h"
#include "engine/kernel/strided.h"

namespace capstan {

inline constexpr DTypeSet kMovableTypes = {DType::kF64, DType::kF32, DType::kI64,
                                           DType::kI32, DType::kU8,  DType::kBool};

// The same memory as integers of the elements' width (8, 4 or 1 bytes).
inline TensorView AsWords(TensorView view) {
  const size_t bytes = SizeOf(view.type.dtype);
  CHECK(bytes == 8 || bytes == 4 || bytes == 1) << NameOf(view.type.dtype);
  view.type.dtype = bytes == 8 ? DType::kI64 : bytes == 4 ? DType::kI32 : DType::kU8;
  return view;
}

// Calls f with a zero of the integer type that AsWords chooses.
template <typename F>
void ForWord(DType dtype, F&& f) {
  switch (SizeOf(dtype)) {
    case 8:
      return f(int64_t{});
    case 4:
      return f(int32_t{});
    default:
      return f(uint8_t{});
  }
}

}  // namespace capstan
