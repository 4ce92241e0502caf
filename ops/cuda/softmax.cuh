// What the rows of a softmax share: a warp takes a row of `count` neighbouring elements.
#pragma once

#include "ops/cuda/reduce.cuh"

namespace capstan {

// softmax(x)[k] = exp(x[k] - greatest) / sum.
template <typename W>
struct SoftmaxParts {
  W greatest, sum;
};

// In every lane; all lanes take part.
template <typename T>
__device__ inline SoftmaxParts<Wide<T>> SoftmaxPartsOf(const T* x, int64_t count) {
  const int lane = threadIdx.x % kWarp;
  Wide<T> greatest = Load(x[0]), sum = 0;
  for (int64_t k = lane; k < count; k += kWarp) {
    const Wide<T> v = Load(x[k]);
    if (!(v <= greatest)) greatest = v;
  }
  greatest = WarpMax(greatest);
  for (int64_t k = lane; k < count; k += kWarp) sum += exp(Load(x[k]) - greatest);
  return {greatest, WarpSum(sum)};
}

// Calls f(row) for every row of [0, rows), each by a warp of its own.
template <typename F>
__device__ inline void ForEachRowOnGrid(int64_t rows, F f) {
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / kWarp;
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < rows;
       row += warps) {
    f(row);
  }
}

}  // namespace capstan
