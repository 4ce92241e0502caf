#include "ops/op_suite/run_kernel.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "engine/base/status.h"

namespace capstan {
namespace {

constexpr int64_t kGuard = 64;  // bytes behind every buffer that nobody may touch
constexpr unsigned char kGuardByte = 0xA5;

// Memory that a kernel sees, on its device, and a guard behind it.
class GuardedBytes {
 public:
  GuardedBytes(Device* device, int64_t bytes) : device_(device), bytes_(bytes) {}
  ~GuardedBytes() {
    if (device_ != nullptr && data_ != nullptr) device_->Free(data_, bytes_ + kGuard);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  // Every byte `poison`, or those of `from` where it has any.
  absl::Status Create(unsigned char poison, const void* from = nullptr) {
    host_ = HostTensor({DType::kU8, {bytes_ + kGuard}});
    if (from != nullptr) {
      std::memcpy(host(), from, static_cast<size_t>(bytes_));
    } else {
      std::memset(host(), poison, static_cast<size_t>(bytes_));
    }
    std::memset(host() + bytes_, kGuardByte, kGuard);
    data_ = host();
    if (device_ == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(data_, device_->Allocate(bytes_ + kGuard));
    return device_->CopyFromHost(data_, host(), bytes_ + kGuard);
  }
  // After the kernel: its bytes in host memory.
  absl::StatusOr<const unsigned char*> Read() {
    if (device_ != nullptr) {
      RETURN_IF_ERROR(device_->CopyToHost(host(), data_, bytes_ + kGuard));
    }
    return host();
  }
  void* data() const { return data_; }
  // Of what Read has read.
  bool intact() const {
    return std::all_of(host() + bytes_, host() + bytes_ + kGuard,
                       [](unsigned char byte) { return byte == kGuardByte; });
  }

 private:
  unsigned char* host() const { return static_cast<unsigned char*>(host_.data()); }

  Device* const device_;
  const int64_t bytes_;
  HostTensor host_;
  void* data_ = nullptr;
};

class KernelRun {
 public:
  KernelRun(const KernelRow& row, const OpCall& call, std::span<const TensorView> inputs,
            const RunOptions& options)
      : row_(row), call_(call), given_(inputs), options_(options) {}

  absl::Status Prepare() {
    if (row_.prepare == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(prepared_, row_.prepare(call_, libraries()), "while preparing");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<HostTensor>> Run(unsigned char poison) {
    const int64_t workspace_bytes =
        row_.workspace_bytes == nullptr ? 0 : row_.workspace_bytes(call_, prepared_.get());
    GuardedBytes workspace(options_.device, workspace_bytes);
    RETURN_IF_ERROR(workspace.Create(poison));
    std::deque<GuardedBytes> output_memory, input_memory;
    std::vector<TensorView> outputs, inputs;
    for (size_t o = 0; o < call_.outputs.size(); ++o) {
      ASSIGN_OR_RETURN(const TensorType type, OutputType(static_cast<int>(o)));
      GuardedBytes& memory = output_memory.emplace_back(options_.device, type.bytes());
      RETURN_IF_ERROR(memory.Create(poison, OverlaidInput(o)));
      outputs.push_back({memory.data(), type});
    }
    for (size_t i = 0; i < given_.size(); ++i) {
      ASSIGN_OR_RETURN(inputs.emplace_back(), Input(i, outputs, &input_memory));
    }
    RETURN_IF_ERROR(Call(workspace.data(), workspace_bytes, outputs, inputs));
    RETURN_IF_ERROR(workspace.Read().status());
    if (!workspace.intact()) return InvalidArgument("writes behind its workspace");
    std::vector<HostTensor> results;
    for (size_t o = 0; o < outputs.size(); ++o) {
      ASSIGN_OR_RETURN(const unsigned char* bytes, output_memory[o].Read());
      if (!output_memory[o].intact()) return InvalidArgument("writes behind output {}", o);
      results.emplace_back(outputs[o].type);
      std::memcpy(results.back().data(), bytes, static_cast<size_t>(outputs[o].type.bytes()));
    }
    return results;
  }

 private:
  DeviceLibraries* libraries() const {
    return options_.device == nullptr ? nullptr : options_.device->libraries();
  }

  // The bytes of the input that output `o` shares memory with, or null.
  const void* OverlaidInput(size_t o) const {
    for (const InPlacePair& pair : options_.in_place) {
      if (static_cast<size_t>(pair.output) != o) continue;
      const TensorView& in = given_[static_cast<size_t>(pair.input)];
      CHECK_EQ(in.type.bytes(), call_.outputs[o].bytes());
      return in.data;
    }
    return nullptr;
  }

  absl::StatusOr<TensorView> Input(size_t i, const std::vector<TensorView>& outputs,
                                   std::deque<GuardedBytes>* memory) const {
    TensorView in = given_[i];
    for (const InPlacePair& pair : options_.in_place) {
      if (static_cast<size_t>(pair.input) != i) continue;
      in.data = outputs[static_cast<size_t>(pair.output)].data;
      return in;
    }
    if (options_.device == nullptr || in.data == nullptr) return in;
    GuardedBytes& copy = memory->emplace_back(options_.device, in.type.bytes());
    RETURN_IF_ERROR(copy.Create(0, in.data));
    in.data = copy.data();
    return in;
  }

  absl::Status Call(void* workspace, int64_t workspace_bytes,
                    const std::vector<TensorView>& outputs,
                    const std::vector<TensorView>& inputs) const {
    KernelContext context;
    context.prepared = prepared_.get();
    context.workspace = workspace;
    context.workspace_bytes = workspace_bytes;
    context.threads = options_.threads;
    context.input_places = options_.input_places;
    context.output_places = options_.output_places;
    context.libraries = libraries();
    const RunValues values{context.random.key(), context.sample_offset};
    GuardedBytes values_memory(options_.device, sizeof(values));
    RETURN_IF_ERROR(values_memory.Create(0, &values));
    if (options_.device != nullptr) {
      context.stream = options_.device->stream();
      context.run_values = static_cast<const RunValues*>(values_memory.data());
    }
    row_.fn(context, outputs, inputs, call_.attrs);
    RETURN_IF_ERROR(context.status);
    return options_.device == nullptr ? absl::OkStatus() : options_.device->Synchronize();
  }

  // Opaque outputs: what the kernel needs, at most what infer promised.
  absl::StatusOr<TensorType> OutputType(int o) const {
    TensorType type = call_.Out(o);
    if (type.dtype != DType::kOpaque || row_.saved_bytes == nullptr) return type;
    const int64_t bytes = row_.saved_bytes(call_, prepared_.get(), o);
    if (bytes > type.bytes()) {
      return InvalidArgument("output {} saves {} bytes, infer promised {} at most", o, bytes,
                             type.bytes());
    }
    type.shape = {bytes};
    return type;
  }

  const KernelRow& row_;
  const OpCall& call_;
  std::span<const TensorView> given_;
  const RunOptions& options_;
  std::shared_ptr<const void> prepared_;
};

bool SameBytes(const HostTensor& a, const HostTensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.type().bytes())) == 0;
}

// The first element in memory order that differs.
int64_t FirstDifference(const HostTensor& a, const HostTensor& b) {
  const auto *x = static_cast<const unsigned char*>(a.data()),
             *y = static_cast<const unsigned char*>(b.data());
  int64_t i = 0;
  while (x[i] == y[i]) ++i;
  return i / static_cast<int64_t>(SizeOf(a.type().dtype));
}

}  // namespace

HostTensor CopyOf(const TensorView& view) {
  HostTensor copy(view.type);
  std::memcpy(copy.data(), view.data, static_cast<size_t>(view.type.bytes()));
  return copy;
}

std::vector<TensorView> ViewsOf(std::span<const HostTensor> tensors) {
  std::vector<TensorView> views;
  for (const HostTensor& t : tensors) views.push_back(t.view());
  return views;
}

absl::StatusOr<std::vector<HostTensor>> RunKernel(const KernelRow& row, const OpCall& call,
                                                  std::span<const TensorView> inputs,
                                                  const RunOptions& options) {
  std::vector<HostTensor> before;
  for (const TensorView& in : inputs) {
    before.push_back(in.data == nullptr ? HostTensor() : CopyOf(in));
  }
  KernelRun run(row, call, inputs, options);
  const auto both = [&]() -> absl::StatusOr<std::vector<HostTensor>> {
    RETURN_IF_ERROR(run.Prepare());
    ASSIGN_OR_RETURN(std::vector<HostTensor> first, run.Run(0xFF));  // NaN in every float type
    ASSIGN_OR_RETURN(const std::vector<HostTensor> second, run.Run(0x5A));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].data == nullptr || SameBytes(before[i], CopyOf(inputs[i]))) continue;
      return InvalidArgument("changes its input {}", i);
    }
    for (size_t o = 0; o < first.size(); ++o) {
      if (first[o].type().dtype == DType::kOpaque || SameBytes(first[o], second[o])) continue;
      return InvalidArgument(
          "output {} ('{}'): the element at {} in memory is not written, or made from memory that "
          "was not",
          o, call.op->outputs[static_cast<int>(o)].name, FirstDifference(first[o], second[o]));
    }
    return first;
  };
  auto result = both();
  if (!result.ok()) {
    return Annotate(result.status(), "while running {} on {}", row.Key(), call.ToString());
  }
  return result;
}

}  // namespace capstan
