// Sums over the threads of a warp and of a block.
#pragma once

#include "ops/cuda/launch.cuh"

namespace capstan {

inline constexpr int kWarp = 32;

// The sum over the warp, in every lane. All lanes take part.
template <typename T>
__device__ inline T WarpSum(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

template <typename T>
__device__ inline T WarpMax(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(0xffffffffu, value, distance);
    // A NaN wins.
    if (!(other <= value)) value = other;
  }
  return value;
}

// The sum over a block of a multiple of 32 threads, at most 1024, in every thread; the order of the
// additions depends on the number of threads only. `shared` is used once per call: calls after each
// other need a __syncthreads() between them or memory of their own.
template <typename T>
__device__ inline T BlockSum(T value, T (&shared)[kWarp]) {
  value = WarpSum(value);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  const int warps = blockDim.x / kWarp;
  return WarpSum(lane < warps ? shared[lane] : T{0});
}

}  // namespace capstan
