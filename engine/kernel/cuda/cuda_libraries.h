// CudaLibraries: what one GPU hands to the kernels on it. All work goes to one stream.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/kernel/device_libraries.h"

namespace capstan {

class CudaLibraries final : public DeviceLibraries {
 public:
  // For the current device; `stream` must outlive the object.
  explicit CudaLibraries(cudaStream_t stream) : stream_(stream) {}

  absl::Status CopyOnDevice(void* to, const void* from, int64_t bytes) override;

 private:
  const cudaStream_t stream_;
};

}  // namespace capstan
