#include <fmt/format.h>

#include "engine/base/status.h"
#include "engine/ir/builder.h"
#include "engine/ir/text.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/suite.h"

namespace capstan {

absl::Status CheckText(const SuiteTables& tables, const OpDef& op, const Example& example) {
  if (example.error != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const OpCall call, CallOfExample(op, example, DType::kF32));
  Graph graph;
  graph.name = "example";
  Builder b(&graph, &tables.ops, Mode::kTrain);
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(call.inputs[i].has_value() ? b.Data(fmt::format("in{}", i), *call.inputs[i])
                                                : kNoValue);
  }
  const std::vector<ValueId> outputs = b.Add(op, call.attrs, inputs);
  RETURN_IF_ERROR(b.status());
  for (size_t o = 0; o < outputs.size(); ++o) graph.AddOutput(fmt::format("out{}", o), outputs[o]);
  const std::string text = PrintGraph(graph);
  std::string_view rest = text;
  ASSIGN_OR_RETURN(const Graph again, ParseGraph(&rest, tables.ops, "printed"));
  if (PrintGraph(again) == text) return absl::OkStatus();
  return InvalidArgument("printed:\n{}\nparsed and printed again:\n{}", text, PrintGraph(again));
}

}  // namespace capstan
