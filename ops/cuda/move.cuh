// Copies that change the order of elements, of any type.
#pragma once

#include "ops/cuda/launch.cuh"
#include "ops/cuda/strided.cuh"

namespace capstan {

inline constexpr DTypeSet kCudaMovableTypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                               DType::kI64, DType::kI32, DType::kU8,  DType::kBool};

// Element i of `to` takes element i of `from`, both counted with the last dimension fastest.
template <typename W>
__global__ void MoveWords(int64_t n, DeviceShape to, DeviceStrides y_strides, DeviceShape from,
                          DeviceStrides x_strides, const W* x, W* y) {
  ForEachOnGrid(n, [&](int64_t i) { y[y_strides.At(to, i)] = x[x_strides.At(from, i)]; });
}

// As MoveWords, for elements of `bytes` bytes.
inline void Move(KernelContext& context, size_t bytes, int64_t n, const DeviceShape& to,
                 const DeviceStrides& y_strides, const DeviceShape& from,
                 const DeviceStrides& x_strides, const void* x, void* y) {
  const auto move = [&](auto word) {
    using W = decltype(word);
    Launch(context, BlocksFor(n), kBlock, MoveWords<W>, n, to, y_strides, from, x_strides,
           static_cast<const W*>(x), static_cast<W*>(y));
  };
  switch (bytes) {
    case 8:
      return move(uint64_t{});
    case 4:
      return move(uint32_t{});
    case 2:
      return move(uint16_t{});
    default:
      return move(uint8_t{});
  }
}

}  // namespace capstan
