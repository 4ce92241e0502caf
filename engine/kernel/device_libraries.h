// DeviceLibraries: what a device hands to the kernels on it besides memory and a stream. Devices
// with libraries of their own (CUDA: engine/kernel/cuda/cuda_libraries.h) derive from it; their
// kernels know which one they get.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace capstan {

class DeviceLibraries {
 public:
  virtual ~DeviceLibraries() = default;

  // Queues a copy within the device's memory behind the work that is queued already. The two pieces
  // do not overlap.
  virtual absl::Status CopyOnDevice(void* to, const void* from, int64_t bytes) = 0;
};

}  // namespace capstan
