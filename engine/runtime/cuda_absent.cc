// In place of the CUDA device in builds without it.
#include "engine/base/status.h"
#include "engine/runtime/device.h"

namespace capstan {

int CudaDeviceCount() { return 0; }

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int) {
  return FailedPrecondition(
      "this trainer was built for the CPU only; build with --config=cuda to use a GPU");
}

}  // namespace capstan
