// Device: memory, threads and libraries that a plan runs on. One object per device and rank, handed
// in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

// Work that was queued once and can be queued again as a whole, at the cost of one call.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual absl::Status Launch() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // For people: "CPU, 2 threads", "NVIDIA H200, GPU 0".
  virtual std::string name() const = 0;
  virtual int threads() const = 0;  // of CPU kernels
  virtual void* stream() const = 0;
  // Null on the CPU.
  virtual DeviceLibraries* libraries() = 0;

  // Zeroed memory, at least 64-byte aligned. ResourceExhausted names the bytes wanted and, where
  // known, those there are.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  virtual void Free(void* memory, int64_t bytes) = 0;
  // Queued behind earlier work. The host memory may change as soon as the call is back.
  virtual absl::Status CopyFromHost(void* device, const void* host, int64_t bytes) = 0;
  // Waits for earlier work, then copies.
  virtual absl::Status CopyToHost(void* host, const void* device, int64_t bytes) = 0;
  // Waits until everything queued is done.
  virtual absl::Status Synchronize() = 0;

  // What `queue` queues, without running it. Null where recording gains nothing (CPU): then `queue`
  // has not been called.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(
      absl::FunctionRef<absl::Status()> queue) = 0;
};

// The CPU with `threads` threads for kernels; 0: as many as there are cores.
std::unique_ptr<Device> MakeCpuDevice(int threads);

// NVIDIA GPUs of this machine that the driver shows; 0 without a driver and in builds without
// --config=cuda.
int CudaDeviceCount();
// GPU `index` of them. FailedPrecondition says what is missing.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int index);

}  // namespace capstan
