// An example as a call on drawn numbers, and a small interpreter for graphs of reference kernels.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/op_suite/suite.h"

namespace capstan {

struct DrawnCall {
  OpCall call;                     // inferred
  std::vector<HostTensor> inputs;  // without memory where absent
  // Inputs of the example behind those of the row: they only feed forward operators.
  std::vector<HostTensor> extra;

  const HostTensor& InputOfExample(int i) const {
    const auto at = static_cast<size_t>(i);
    return at < inputs.size() ? inputs[at] : extra[at - inputs.size()];
  }
};

struct DrawOptions {
  DType dtype = DType::kF64;                   // in place of f32
  MemoryFormat format = MemoryFormat::kPlain;  // of all 4-d arguments
  // Of kernels whose opaque outputs are inputs here.
  std::string_view impl = "reference";
  Device* device = nullptr;  // which they run on; null: the CPU
};

// Errors are infer's.
absl::StatusOr<DrawnCall> DrawCall(const SuiteTables& tables, const OpDef& op,
                                   const Example& example, const DrawOptions& options = {});

// The call's types without numbers.
absl::StatusOr<OpCall> CallOfExample(const OpDef& op, const Example& example, DType dtype);

// The call of e's forward operator on some of the example's inputs.
struct ForwardCall {
  OpCall call;
  std::vector<TensorView> inputs;
};
absl::StatusOr<ForwardCall> ForwardCallOf(const ExampleInput& e, const DrawnCall& drawn);

// Output `e.forward_output` of that call. Opaque bytes may be shorter than the type in the call.
absl::StatusOr<HostTensor> ForwardValue(const SuiteTables& tables, const ExampleInput& e,
                                        const ForwardCall& forward, std::string_view impl,
                                        Device* device = nullptr);

// Standard normal numbers; `name` chooses them.
std::vector<double> NormalValues(int64_t count, std::string_view name);

// The reference kernels know f32 and f64 only: a call of 16-bit types runs, and gives its results,
// in f32.
absl::StatusOr<std::vector<HostTensor>> RunReference(const SuiteTables& tables, const OpCall& call,
                                                     std::span<const TensorView> inputs);

// Values of a graph by id; those of its inputs are given. Nodes run in order on reference kernels.
absl::Status RunGraph(const SuiteTables& tables, const Graph& graph,
                      std::vector<HostTensor>* values);

}  // namespace capstan
