#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "engine/base/status.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/host_values.h"
#include "ops/op_suite/run_kernel.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

bool IsReference(const KernelRow& kernel) { return std::string_view(kernel.impl) == "reference"; }

bool CanRun(const SuiteTables& tables, const KernelRow& kernel) {
  const Device* device = tables.device;
  return kernel.device == (device == nullptr ? DeviceKind::kCpu : device->kind());
}

bool Serves(const KernelRow& kernel, const OpCall& call) {
  return kernel.dtypes.Has(call.MainDType()) &&
         (kernel.supports == nullptr || kernel.supports(call));
}

// Calls f(example, drawn) for every call on which the kernel can be tried: examples x element types
// x formats. `*tried`: their number.
template <typename F>
absl::Status ForEachServedCall(const SuiteTables& tables, const KernelRow& kernel, int* tried,
                               F&& f) {
  const OpDef& op = tables.ops.Get(kernel.op);
  const std::vector<Example> examples = op.examples();
  for (size_t e = 0; e < examples.size(); ++e) {
    if (examples[e].error != nullptr) continue;
    std::set<std::string> seen;  // an example without f32 is the same for every element type
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      for (const MemoryFormat format : {MemoryFormat::kPlain, MemoryFormat::kChannelsLast}) {
        if (format != MemoryFormat::kPlain && op.traits.layout == LayoutNeed::kPlain) continue;
        const auto drawn = DrawCall(
            tables, op, examples[e],
            {.dtype = dtype, .format = format, .impl = kernel.impl, .device = tables.device});
        // Rows may refuse 16-bit types, and what this kernel reads may have no kernel that writes
        // it.
        if (!drawn.ok() && (dtype != DType::kF32 || absl::IsNotFound(drawn.status()))) continue;
        RETURN_IF_ERROR(drawn.status(), "while drawing example {}", e);
        if (!Serves(kernel, drawn->call) || !seen.insert(drawn->call.ToString()).second) continue;
        ++*tried;
        RETURN_IF_ERROR(f(examples[e], *drawn), "while running example {}", e);
      }
    }
  }
  return absl::OkStatus();
}

// Opaque inputs are read by the implementation that wrote them: the reference needs its own.
absl::StatusOr<std::vector<HostTensor>> InputsForReference(const SuiteTables& tables,
                                                           const Example& example,
                                                           const DrawnCall& drawn) {
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    inputs.emplace_back();
    const HostTensor& in = drawn.inputs[i];
    if (in.data() == nullptr) continue;
    if (in.type().dtype != DType::kOpaque) {
      inputs.back() = CopyOf(in.view());
      continue;
    }
    ASSIGN_OR_RETURN(const ForwardCall forward, ForwardCallOf(example.inputs[i], drawn));
    ASSIGN_OR_RETURN(inputs.back(), ForwardValue(tables, example.inputs[i], forward, "reference"));
  }
  return inputs;
}

// By the result's element type and the length of the sums in it, which the cost tells.
double ToleranceFor(const OpCall& call, size_t output) {
  const DType dtype = call.outputs[output].dtype;
  const double eps = std::max(EpsilonOf(dtype), EpsilonOf(call.MainDType()));
  const double count = static_cast<double>(std::max<int64_t>(call.outputs[output].count(), 1));
  return 8 * eps * std::sqrt(std::max(call.op->cost(call).flops / count, 1.0));
}

absl::Status CompareOutputs(const OpCall& call, const std::vector<HostTensor>& got,
                            const std::vector<HostTensor>& want) {
  for (size_t o = 0; o < want.size(); ++o) {
    if (want[o].type().dtype == DType::kOpaque) continue;
    RETURN_IF_ERROR(CompareValues(fmt::format("output {} ('{}')", o,
                                              call.op->outputs[static_cast<int>(o)].name),
                                  got[o].view(), want[o].view(), ToleranceFor(call, o)),
                    "while running {}", call.ToString());
  }
  return absl::OkStatus();
}

// Pairs that this call can use: both are there and of equal types.
std::vector<InPlacePair> UsablePairs(const OpCall& call) {
  std::vector<InPlacePair> pairs;
  for (const InPlacePair& pair : call.op->traits.in_place) {
    if (call.Has(pair.input) && call.In(pair.input) == call.Out(pair.output)) {
      pairs.push_back(pair);
    }
  }
  return pairs;
}

// Each pair alone, and as many as go together.
std::vector<std::vector<InPlacePair>> InPlaceChoices(const OpCall& call) {
  std::vector<std::vector<InPlacePair>> choices;
  std::vector<InPlacePair> together;
  for (const InPlacePair& pair : UsablePairs(call)) {
    choices.push_back({pair});
    const bool taken = std::any_of(together.begin(), together.end(), [&](const InPlacePair& p) {
      return p.output == pair.output || p.input == pair.input;
    });
    if (!taken) together.push_back(pair);
  }
  if (together.size() > 1) choices.push_back(together);
  return choices;
}

}  // namespace

absl::Status CheckKernel(const SuiteTables& tables, const KernelRow& kernel) {
  if (!CanRun(tables, kernel) || IsReference(kernel)) return absl::OkStatus();
  int tried = 0;
  RETURN_IF_ERROR(ForEachServedCall(
      tables, kernel, &tried, [&](const Example& example, const DrawnCall& drawn) -> absl::Status {
        ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs,
                         InputsForReference(tables, example, drawn));
        ASSIGN_OR_RETURN(const std::vector<HostTensor> want,
                         RunReference(tables, drawn.call, ViewsOf(inputs)));
        for (const int threads : {1, 2}) {
          ASSIGN_OR_RETURN(const std::vector<HostTensor> got,
                           RunKernel(kernel, drawn.call, ViewsOf(drawn.inputs),
                                     {.device = tables.device, .threads = threads}));
          RETURN_IF_ERROR(CompareOutputs(drawn.call, got, want), "while using {} threads", threads);
          if (tables.device != nullptr) break;
        }
        return absl::OkStatus();
      }));
  if (tried > 0) return absl::OkStatus();
  return InvalidArgument("{} serves no example of its operator, so it is never tested",
                         kernel.Key());
}

absl::Status CheckInPlace(const SuiteTables& tables, const KernelRow& kernel) {
  if (!CanRun(tables, kernel)) return absl::OkStatus();
  if (tables.ops.Get(kernel.op).traits.in_place.size() == 0) return absl::OkStatus();
  int tried = 0;
  return ForEachServedCall(
      tables, kernel, &tried, [&](const Example&, const DrawnCall& drawn) -> absl::Status {
        const std::vector<TensorView> inputs = ViewsOf(drawn.inputs);
        ASSIGN_OR_RETURN(const std::vector<HostTensor> want,
                         RunKernel(kernel, drawn.call, inputs, {.device = tables.device}));
        for (const std::vector<InPlacePair>& pairs : InPlaceChoices(drawn.call)) {
          ASSIGN_OR_RETURN(
              const std::vector<HostTensor> got,
              RunKernel(kernel, drawn.call, inputs, {.device = tables.device, .in_place = pairs}));
          RETURN_IF_ERROR(CompareOutputs(drawn.call, got, want),
                          "while writing output {} over input {}", pairs[0].output, pairs[0].input);
        }
        return absl::OkStatus();
      });
}

}  // namespace capstan
