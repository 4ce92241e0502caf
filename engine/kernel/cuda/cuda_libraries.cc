#include "engine/kernel/cuda/cuda_libraries.h"

#include <algorithm>
#include <limits>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

constexpr int kTimedRuns = 3;

// Two events around some work.
class StopWatch {
 public:
  StopWatch() = default;
  ~StopWatch() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  absl::Status Create() {
    RETURN_IF_CUDA_ERROR(cudaEventCreate(&begin_));
    RETURN_IF_CUDA_ERROR(cudaEventCreate(&end_));
    return absl::OkStatus();
  }
  absl::StatusOr<float> Time(cudaStream_t stream, absl::FunctionRef<absl::Status()> queue) {
    RETURN_IF_CUDA_ERROR(cudaEventRecord(begin_, stream));
    RETURN_IF_ERROR(queue());
    RETURN_IF_CUDA_ERROR(cudaEventRecord(end_, stream));
    RETURN_IF_CUDA_ERROR(cudaEventSynchronize(end_));
    float milliseconds = 0;
    RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

CudaLibraries::~CudaLibraries() {
  FreeTrialMemory();
  if (cublas_lt_ != nullptr) cublasLtDestroy(cublas_lt_);
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
}

absl::Status CudaLibraries::CopyOnDevice(void* to, const void* from, int64_t bytes) {
  RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_));
  return absl::OkStatus();
}

absl::StatusOr<cudnnHandle_t> CudaLibraries::Cudnn() {
  if (cudnn_ == nullptr) {
    RETURN_IF_CUDA_ERROR(cudnnCreate(&cudnn_));
    RETURN_IF_CUDA_ERROR(cudnnSetStream(cudnn_, stream_));
  }
  return cudnn_;
}

absl::StatusOr<cublasLtHandle_t> CudaLibraries::CublasLt() {
  if (cublas_lt_ == nullptr) RETURN_IF_CUDA_ERROR(cublasLtCreate(&cublas_lt_));
  return cublas_lt_;
}

absl::StatusOr<std::shared_ptr<const void>> CudaLibraries::Once(
    const std::string& key, absl::FunctionRef<absl::StatusOr<std::shared_ptr<const void>>()> make) {
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  ASSIGN_OR_RETURN(std::shared_ptr<const void> made, make());
  return made_.emplace(key, std::move(made)).first->second;
}

absl::StatusOr<void*> CudaLibraries::TrialMemory(int64_t bytes) {
  if (bytes <= trial_bytes_) return trial_;
  FreeTrialMemory();
  if (const cudaError_t error = cudaMalloc(&trial_, static_cast<size_t>(bytes));
      error != cudaSuccess) {
    cudaGetLastError();
    trial_ = nullptr;
    return ResourceExhausted("no {} of GPU memory to try kernels with: {}",
                             HumanBytes(static_cast<double>(bytes)), cudaGetErrorString(error));
  }
  trial_bytes_ = bytes;
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(trial_, 0, static_cast<size_t>(bytes), stream_));
  return trial_;
}

void CudaLibraries::FreeTrialMemory() {
  if (trial_ != nullptr) cudaFree(trial_);
  trial_ = nullptr;
  trial_bytes_ = 0;
}

absl::StatusOr<float> CudaLibraries::Time(absl::FunctionRef<absl::Status()> queue) {
  RETURN_IF_ERROR(queue());
  StopWatch watch;
  RETURN_IF_ERROR(watch.Create());
  float best = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kTimedRuns; ++i) {
    ASSIGN_OR_RETURN(const float milliseconds, watch.Time(stream_, queue));
    best = std::min(best, milliseconds);
  }
  return best;
}

}  // namespace capstan
