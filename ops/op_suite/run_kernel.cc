#include "ops/op_suite/run_kernel.h"

#include <cstring>

#include "engine/base/status.h"

namespace capstan {
namespace {

constexpr int64_t kGuard = 64;  // bytes behind every buffer that nobody may touch
constexpr unsigned char kGuardByte = 0xA5;

// Memory of `bytes` filled with `poison`, and a guard behind it.
class GuardedBytes {
 public:
  GuardedBytes(int64_t bytes, unsigned char poison)
      : bytes_(bytes), memory_({DType::kU8, {bytes + kGuard}}) {
    std::memset(data(), poison, static_cast<size_t>(bytes));
    std::memset(guard(), kGuardByte, kGuard);
  }
  unsigned char* data() const { return static_cast<unsigned char*>(memory_.data()); }
  bool intact() const {
    for (int64_t i = 0; i < kGuard; ++i) {
      if (guard()[i] != kGuardByte) return false;
    }
    return true;
  }

 private:
  unsigned char* guard() const { return data() + bytes_; }

  int64_t bytes_;
  HostTensor memory_;
};

class KernelRun {
 public:
  KernelRun(const KernelRow& row, const OpCall& call, std::span<const TensorView> inputs,
            const RunOptions& options)
      : row_(row), call_(call), given_(inputs), options_(options) {}

  absl::Status Prepare() {
    if (row_.prepare == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(prepared_, row_.prepare(call_), "while preparing");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<HostTensor>> Run(unsigned char poison) {
    const int64_t workspace_bytes =
        row_.workspace_bytes == nullptr ? 0 : row_.workspace_bytes(call_, prepared_.get());
    const GuardedBytes workspace(workspace_bytes, poison);
    std::vector<GuardedBytes> memory;
    std::vector<TensorView> outputs, inputs(given_.begin(), given_.end());
    for (size_t o = 0; o < call_.outputs.size(); ++o) {
      ASSIGN_OR_RETURN(const TensorType type, OutputType(static_cast<int>(o)));
      memory.emplace_back(type.bytes(), poison);
      outputs.push_back({memory.back().data(), type});
    }
    for (const InPlacePair& pair : options_.in_place) {
      const TensorView& out = outputs[static_cast<size_t>(pair.output)];
      TensorView& in = inputs[static_cast<size_t>(pair.input)];
      CHECK_EQ(in.type.bytes(), out.type.bytes());
      std::memcpy(out.data, in.data, static_cast<size_t>(in.type.bytes()));
      in.data = out.data;
    }
    KernelContext context;
    context.prepared = prepared_.get();
    context.workspace = workspace.data();
    context.workspace_bytes = workspace_bytes;
    context.threads = options_.threads;
    context.input_places = options_.input_places;
    context.output_places = options_.output_places;
    row_.fn(context, outputs, inputs, call_.attrs);
    RETURN_IF_ERROR(context.status);
    if (!workspace.intact()) return InvalidArgument("writes behind its workspace");
    std::vector<HostTensor> results;
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (!memory[o].intact()) return InvalidArgument("writes behind output {}", o);
      results.push_back(CopyOf(outputs[o]));
    }
    return results;
  }

 private:
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
