// CudaLibraries: the libraries of one GPU, for kernels that are prepared and run on it. All work
// goes to one stream.
//
//   auto& libraries = CudaLibrariesOf(context);
//   cudnnHandle_t cudnn = libraries.cudnn();
//
// Handles are made when first wanted. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/kernel/cuda/cuda_status.h"
#include "engine/kernel/kernel_context.h"

namespace capstan {

class CudaLibraries final : public DeviceLibraries {
 public:
  // For the current device; `stream` must outlive the object.
  explicit CudaLibraries(cudaStream_t stream) : stream_(stream) {}
  ~CudaLibraries() override;
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;

  absl::Status CopyOnDevice(void* to, const void* from, int64_t bytes) override;

  cudaStream_t stream() const { return stream_; }
  absl::StatusOr<cudnnHandle_t> Cudnn();
  absl::StatusOr<cublasLtHandle_t> CublasLt();

  // What `make` returned when it was first called for `key`: equal calls share one tuned plan.
  absl::StatusOr<std::shared_ptr<const void>> Once(
      const std::string& key,
      absl::FunctionRef<absl::StatusOr<std::shared_ptr<const void>>()> make);

  // Device memory of undefined content for measurements while planning, from TrialMemory on until
  // FreeTrialMemory; a call for more moves it.
  absl::StatusOr<void*> TrialMemory(int64_t bytes);
  void FreeTrialMemory();
  // Milliseconds of one run of what `queue` queues: the least of some runs after one that warms up.
  absl::StatusOr<float> Time(absl::FunctionRef<absl::Status()> queue);

 private:
  const cudaStream_t stream_;
  cudnnHandle_t cudnn_ = nullptr;
  cublasLtHandle_t cublas_lt_ = nullptr;
  void* trial_ = nullptr;
  int64_t trial_bytes_ = 0;
  std::map<std::string, std::shared_ptr<const void>> made_;
};

inline CudaLibraries& CudaLibrariesOf(const KernelContext& context) {
  return *static_cast<CudaLibraries*>(context.libraries);
}

}  // namespace capstan
