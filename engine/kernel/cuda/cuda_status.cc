#include "engine/kernel/cuda/cuda_status.h"

#include "engine/base/status.h"

namespace capstan {

absl::Status CudaStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  return Internal("{}: {}", call, cudaGetErrorString(error));
}

}  // namespace capstan
