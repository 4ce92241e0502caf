// The CUDA device: memory, one stream, pinned staging for copies, programs recorded as graphs.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/kernel/cuda/cuda_libraries.h"
#include "engine/kernel/cuda/cuda_status.h"
#include "engine/runtime/device.h"

namespace capstan {
namespace {

// What kernels are compiled for (tools/third_party/cuda/cuda_library.bzl).
constexpr int kComputeMajor = 9, kComputeMinor = 0;

// Pinned pieces of host memory that copies go through, one after the other: the caller's memory is
// free as soon as its bytes are in a piece.
class StagingRing {
 public:
  ~StagingRing() {
    for (Piece& piece : pieces_) {
      if (piece.free != nullptr) cudaEventDestroy(piece.free);
    }
    if (memory_ != nullptr) cudaFreeHost(memory_);
  }

  absl::Status Create() {
    RETURN_IF_CUDA_ERROR(
        cudaHostAlloc(reinterpret_cast<void**>(&memory_), kPieces * kPieceBytes, 0));
    for (Piece& piece : pieces_) {
      RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&piece.free, cudaEventDisableTiming));
    }
    return absl::OkStatus();
  }

  absl::Status Copy(void* device, const void* host, int64_t bytes, cudaStream_t stream) {
    for (int64_t done = 0; done < bytes; done += kPieceBytes) {
      const auto part = static_cast<size_t>(std::min(kPieceBytes, bytes - done));
      char* staged = memory_ + static_cast<int64_t>(next_) * kPieceBytes;
      Piece& piece = pieces_[next_];
      next_ = (next_ + 1) % kPieces;
      if (piece.used) RETURN_IF_CUDA_ERROR(cudaEventSynchronize(piece.free));
      piece.used = true;
      std::memcpy(staged, static_cast<const char*>(host) + done, part);
      RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(static_cast<char*>(device) + done, staged, part,
                                           cudaMemcpyHostToDevice, stream));
      RETURN_IF_CUDA_ERROR(cudaEventRecord(piece.free, stream));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kPieces = 8;
  static constexpr int64_t kPieceBytes = int64_t{8} << 20;
  struct Piece {
    cudaEvent_t free = nullptr;  // after the copy out of it
    bool used = false;
  };

  char* memory_ = nullptr;
  std::array<Piece, kPieces> pieces_;
  size_t next_ = 0;
};

class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaGraphExec_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  ~CudaRecording() override { cudaGraphExecDestroy(graph_); }
  absl::Status Launch() override {
    RETURN_IF_CUDA_ERROR(cudaGraphLaunch(graph_, stream_));
    return absl::OkStatus();
  }

 private:
  const cudaGraphExec_t graph_;
  const cudaStream_t stream_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {}
  ~CudaDevice() override {
    libraries_.reset();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::Status Open() {
    RETURN_IF_CUDA_ERROR(cudaSetDevice(index_));
    cudaDeviceProp properties;
    RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, index_));
    if (properties.major != kComputeMajor || properties.minor != kComputeMinor) {
      return FailedPrecondition(
          "GPU {} ({}) has compute capability {}.{}; kernels are built for {}.{} (H100, H200)",
          index_, properties.name, properties.major, properties.minor, kComputeMajor,
          kComputeMinor);
    }
    name_ = fmt::format("{}, GPU {}", properties.name, index_);
    RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    libraries_ = std::make_unique<CudaLibraries>(stream_);
    return staging_.Create();
  }

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return name_; }
  int threads() const override { return 1; }
  void* stream() const override { return stream_; }
  DeviceLibraries* libraries() override { return libraries_.get(); }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (bytes == 0) return nullptr;
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(bytes));
    if (error == cudaErrorMemoryAllocation) return OutOfMemory(bytes);
    RETURN_IF_ERROR(CudaStatus(error, "cudaMalloc"));
    RETURN_IF_CUDA_ERROR(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), stream_));
    return memory;
  }
  void Free(void* memory, int64_t) override {
    if (memory != nullptr) cudaFree(memory);
  }
  absl::Status CopyFromHost(void* device, const void* host, int64_t bytes) override {
    return staging_.Copy(device, host, bytes, stream_);
  }
  absl::Status CopyToHost(void* host, const void* device, int64_t bytes) override {
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_));
    return Synchronize();
  }
  absl::Status Synchronize() override {
    RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Recording>> Record(
      absl::FunctionRef<absl::Status()> queue) override {
    RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    const absl::Status queued = queue();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    cudaGraphExec_t executable = nullptr;
    absl::Status status = queued;
    status.Update(CudaStatus(ended, "cudaStreamEndCapture"));
    if (status.ok()) {
      status = CudaStatus(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    }
    if (graph != nullptr) cudaGraphDestroy(graph);
    RETURN_IF_ERROR(status);
    return std::make_unique<CudaRecording>(executable, stream_);
  }

 private:
  absl::Status OutOfMemory(int64_t bytes) const {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return ResourceExhausted(
        "{} of GPU memory wanted, {} of {} free on {}; make the batch smaller, use `amp`, or end "
        "other programs on this GPU",
        HumanBytes(static_cast<double>(bytes)), HumanBytes(static_cast<double>(free)),
        HumanBytes(static_cast<double>(total)), name_);
  }

  const int index_;
  std::string name_;
  cudaStream_t stream_ = nullptr;
  StagingRing staging_;
  std::unique_ptr<CudaLibraries> libraries_;
};

}  // namespace

int CudaDeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  return error == cudaSuccess ? count : 0;
}

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int index) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return FailedPrecondition("no GPU can be used: {}; check the driver with `nvidia-smi`",
                              cudaGetErrorString(error));
  }
  if (index < 0 || index >= count) {
    return FailedPrecondition("no GPU {}: this machine shows {}", index, count);
  }
  auto device = std::make_unique<CudaDevice>(index);
  RETURN_IF_ERROR(device->Open(), "while opening GPU {}", index);
  return device;
}

}  // namespace capstan
