// Launching kernels, and the element types they compute with.
//
//   ForCudaFloat(dtype, [&](auto zero) {
//     using T = decltype(zero);   // float, double, __half or __nv_bfloat16
//     Launch(context, BlocksFor(n), kBlock, MyKernel<T>, n, x, y);
//   });
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/kernel/cuda/cuda_status.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

inline constexpr int kBlock = 256;               // threads, where nothing speaks for another number
inline constexpr int64_t kMaxBlocks = 132 * 16;  // some for each multiprocessor; kernels loop

inline constexpr DTypeSet kCudaTypes = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

// Blocks of kBlock threads for n items, each thread taking several where there are many.
inline unsigned BlocksFor(int64_t n, int64_t threads = kBlock) {
  return static_cast<unsigned>(std::clamp<int64_t>((n + threads - 1) / threads, 1, kMaxBlocks));
}

// Queues the kernel; a failed launch is the context's status.
template <typename... Parameters, typename... Args>
void Launch(KernelContext& context, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
            Args... args) {
  kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(context.stream)>>>(
      static_cast<Parameters>(args)...);
  context.status.Update(CudaStatus(cudaGetLastError(), "launching a kernel"));
}

// What sums of T are gathered in: float, or double for double.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
__device__ inline Wide<T> Load(T value) {
  return static_cast<Wide<T>>(value);
}
template <typename T>
__device__ inline T Store(Wide<T> value) {
  return static_cast<T>(value);
}

template <typename F>
void ForCudaFloat(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(float{});
    case DType::kF64:
      return f(double{});
    case DType::kF16:
      return f(__half{});
    case DType::kBF16:
      return f(__nv_bfloat16{});
    default:
      CHECK(false) << "no CUDA kernel for " << NameOf(dtype);
  }
}

// Calls f(i) once for every i of [0, n), over all threads of the grid.
template <typename F>
__device__ inline void ForEachOnGrid(int64_t n, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

// A row of ours for any sizes and memory formats; callers narrow what it takes.
inline KernelRow CudaRow(const char* op, KernelFn fn) {
  return {.op = op,
          .device = DeviceKind::kCuda,
          .impl = "cuda",
          .priority = 10,
          .dtypes = kCudaTypes,
          .fn = fn};
}

template <typename T>
T* CudaData(const TensorView& view) {
  return static_cast<T*>(view.data);
}

}  // namespace capstan
