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
};

struct DrawOptions {
  DType dtype = DType::kF64;                   // in place of f32
  MemoryFormat format = MemoryFormat::kPlain;  // of all 4-d arguments
  std::string_view impl = "reference";         // of kernels whose opaque outputs are inputs here
};

// Errors are infer's.
absl::StatusOr<DrawnCall> DrawCall(const SuiteTables& tables, const OpDef& op,
                                   const Example& example, const DrawOptions& options = {});

// The call's types without numbers.
absl::StatusOr<OpCall> CallOfExample(const OpDef& op, const Example& example, DType dtype);

// Output `e.forward_output` of e's forward operator on some of these inputs. `type` is infer's: the
// value of opaque bytes may be shorter.
struct ForwardResult {
  HostTensor value;
  TensorType type;
};
absl::StatusOr<ForwardResult> ForwardValue(const SuiteTables& tables, const ExampleInput& e,
                                           std::span<const HostTensor> inputs,
                                           std::string_view impl);

// Standard normal numbers; `name` chooses them.
std::vector<double> NormalValues(int64_t count, std::string_view name);

absl::StatusOr<std::vector<HostTensor>> RunReference(const SuiteTables& tables, const OpCall& call,
                                                     std::span<const TensorView> inputs);

// Values of a graph by id; those of its inputs are given. Nodes run in order on reference kernels.
absl::Status RunGraph(const SuiteTables& tables, const Graph& graph,
                      std::vector<HostTensor>* values);

}  // namespace capstan
