#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>

#include <cstring>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/runtime/device.h"

namespace capstan {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {
    // oneDNN takes the number from OpenMP.
    omp_set_num_threads(threads);
  }

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  int threads() const override { return threads_; }
  std::string name() const override {
    return fmt::format("CPU, {} thread{}", threads_, threads_ == 1 ? "" : "s");
  }
  void* stream() const override { return nullptr; }
  DeviceLibraries* libraries() override { return nullptr; }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (bytes == 0) return nullptr;
    // Anonymous pages: zeroed, aligned, and resident only once touched.
    void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return ResourceExhausted("no {} of host memory; make the batch or the model smaller",
                               HumanBytes(static_cast<double>(bytes)));
    }
    return memory;
  }
  void Free(void* memory, int64_t bytes) override {
    if (memory != nullptr) munmap(memory, static_cast<size_t>(bytes));
  }
  absl::Status CopyFromHost(void* device, const void* host, int64_t bytes) override {
    std::memcpy(device, host, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void* host, const void* device, int64_t bytes) override {
    std::memcpy(host, device, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Recording>> Record(absl::FunctionRef<absl::Status()>) override {
    return nullptr;
  }

 private:
  const int threads_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(int threads) {
  return std::make_unique<CpuDevice>(threads > 0 ? threads : omp_get_num_procs());
}

}  // namespace capstan
