// Device: memory and threads that a plan runs on. One object per device and rank, handed in.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  virtual int threads() const = 0;  // of CPU kernels
  virtual void* stream() const = 0;

  // Zeroed memory, at least 64-byte aligned. ResourceExhausted names the bytes wanted and, where
  // known, those there are.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  virtual void Free(void* memory, int64_t bytes) = 0;
  virtual absl::Status CopyFromHost(void* device, const void* host, int64_t bytes) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device, int64_t bytes) = 0;
  // Waits until everything queued is done.
  virtual absl::Status Synchronize() = 0;
};

// The CPU with `threads` threads for kernels; 0: as many as there are cores.
std::unique_ptr<Device> MakeCpuDevice(int threads);

}  // namespace capstan
