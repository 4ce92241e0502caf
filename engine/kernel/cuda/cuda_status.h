// Errors of CUDA as absl::Status, with the call that failed and CUDA's own words.
//
//   RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream));
//   // Internal: cudaStreamSynchronize(stream): an illegal memory access was encountered
#pragma once

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace capstan {

absl::Status CudaStatus(cudaError_t error, const char* call);

}  // namespace capstan

#define RETURN_IF_CUDA_ERROR(call)                                                              \
  do {                                                                                          \
    if (absl::Status cuda_status_ = ::capstan::CudaStatus((call), #call); !cuda_status_.ok()) { \
      return cuda_status_;                                                                      \
    }                                                                                           \
  } while (false)
