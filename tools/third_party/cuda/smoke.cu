#include <cuda_runtime.h>

#include "engine/kernel/kernel_row.h"  // what every kernel of ours includes
#include "tools/third_party/cuda/smoke.h"

namespace capstan {
namespace {

// Grid: one block of one thread. Moves 4 bytes.
__global__ void Twice(int x, int* result) { *result = 2 * x; }

}  // namespace

int TwiceOnGpu(int x) {
  int* on_device = nullptr;
  int result = 0;
  cudaError_t error = cudaMalloc(&on_device, sizeof(int));
  if (error != cudaSuccess) return -static_cast<int>(error);
  Twice<<<1, 1>>>(x, on_device);
  error = cudaMemcpy(&result, on_device, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(on_device);
  return error == cudaSuccess ? result : -static_cast<int>(error);
}

}  // namespace capstan
