#include "engine/kernel/cuda/cuda_status.h"

#include "engine/base/status.h"

namespace capstan {

absl::Status CudaStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  return Internal("{}: {}", call, cudaGetErrorString(error));
}

absl::Status CudaStatus(cudnnStatus_t error, const char* call) {
  if (error == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return Internal("{}: {}", call, cudnnGetErrorString(error));
}

absl::Status CudaStatus(cublasStatus_t error, const char* call) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return Internal("{}: {}", call, cublasLtGetStatusString(error));
}

}  // namespace capstan
