#include "engine/kernel/cuda/cuda_libraries.h"

#include "engine/kernel/cuda/cuda_status.h"

namespace capstan {

absl::Status CudaLibraries::CopyOnDevice(void* to, const void* from, int64_t bytes) {
  RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_));
  return absl::OkStatus();
}

}  // namespace capstan
