#include "engine/ir/verify.h"

#include <set>

#include "engine/base/status.h"
#include "engine/ir/text.h"

namespace capstan {
namespace {

template <typename... Args>
absl::Status Broken(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kInternal,
                              fmt::format(format, std::forward<Args>(args)...));
}

absl::Status VerifyTypes(const Graph& graph, const Node& node) {
  OpCall inferred = CallOf(graph, node);
  const std::vector<TensorType> actual = inferred.outputs;
  RETURN_IF_ERROR(InferCall(inferred));
  for (size_t i = 0; i < actual.size(); ++i) {
    const TensorType& want = inferred.outputs[i];
    if (want.dtype != actual[i].dtype || want.shape != actual[i].shape) {
      return Broken("output {} has type {}, infer gives {}", i, actual[i].ToString(),
                    want.ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyFormats(const Graph& graph, const Node& node, Stage stage) {
  std::vector<ValueId> arguments = node.inputs;
  arguments.insert(arguments.end(), node.outputs.begin(), node.outputs.end());
  for (const ValueId v : arguments) {
    if (v == kNoValue) continue;
    const TensorType& t = graph.type(v);
    if (stage != Stage::kLowered) {
      if (t.format != MemoryFormat::kPlain && graph.value(v).producer != kNoNode) {
        return Broken("%{} has a memory format before the layout pass", v);
      }
    } else if (node.op->traits.layout == LayoutNeed::kImage && t.ndim() == 4 &&
               t.format != MemoryFormat::kChannelsLast) {
      return Broken("%{} is {}, an image row needs channels_last", v, t.ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyNode(const Graph& graph, NodeId id, Stage stage,
                        std::set<std::string>* streams) {
  const Node& node = graph.node(id);
  if (node.op == nullptr) return Broken("erased node left behind");
  if (node.outputs.size() != static_cast<size_t>(node.op->outputs.size())) {
    return Broken("{} outputs, the row declares {}", node.outputs.size(), node.op->outputs.size());
  }
  for (const ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    if (v < 0 || v >= static_cast<ValueId>(graph.values().size())) {
      return Broken("no value %{}", v);
    }
    if (graph.value(v).producer >= id) return Broken("%{} is used before it is made", v);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& made = graph.value(node.outputs[i]);
    if (made.producer != id || made.output != static_cast<int>(i)) {
      return Broken("output %{} does not know its producer", node.outputs[i]);
    }
  }
  // A gradient draws the same numbers as its forward row, so only forward rows own a stream.
  if (node.op->traits.random && node.origin.empty()) {
    const std::string stream = PrintValue(*node.attrs.type(), node.attrs.data(), true) + node.scope;
    if (!streams->insert(stream).second) {
      return Broken("another random row draws from the same stream; give each its own scope");
    }
  }
  RETURN_IF_ERROR(VerifyTypes(graph, node));
  return VerifyFormats(graph, node, stage);
}

}  // namespace

const char* NameOf(Stage stage) {
  switch (stage) {
    case Stage::kLogical:
      return "logical";
    case Stage::kDifferentiated:
      return "differentiated";
    case Stage::kOptimized:
      return "optimized";
    case Stage::kLowered:
      return "lowered";
  }
  return "?";
}

absl::Status VerifyGraph(const Graph& graph, Stage stage) {
  std::set<std::string> names, streams;
  for (const GraphInput& in : graph.inputs()) {
    if (!names.insert(in.name).second) {
      return Broken("graph {}: two inputs are named {}", graph.name, in.name);
    }
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    const absl::Status status = VerifyNode(graph, id, stage, &streams);
    if (!status.ok()) {
      const Node& n = graph.node(id);
      return Annotate(status, "while verifying node {} ({} @{}) of graph {} at stage {}", i,
                      n.op == nullptr ? "erased" : n.op->name, n.scope, graph.name, NameOf(stage));
    }
  }
  std::set<ValueId> updated;
  for (const StateUpdate& u : graph.updates()) {
    const GraphInput* state = graph.InputOf(u.state);
    if (state == nullptr || state->kind == InputKind::kData) {
      return Broken("graph {}: update of %{}, which is not persistent", graph.name, u.state);
    }
    if (!updated.insert(u.state).second) {
      return Broken("graph {}: {} is updated twice", graph.name, state->name);
    }
    const TensorType &to = graph.type(u.state), &from = graph.type(u.value);
    if (to.dtype != from.dtype || to.shape != from.shape) {
      return Broken("graph {}: update of {} ({}) by {}", graph.name, state->name, to.ToString(),
                    from.ToString());
    }
  }
  return absl::OkStatus();
}

}  // namespace capstan
