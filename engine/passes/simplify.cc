// simplify: drops nodes that nobody reads, merges equal nodes, and removes casts and reshapes that
// change nothing.
#include <map>

#include "engine/passes/pass.h"

namespace capstan {
namespace {

// A node that gives back its input: the value to use instead, or kNoValue.
ValueId Identity(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  if (op != "cast" && op != "reshape" && op != "transpose") return kNoValue;
  const ValueId in = node.inputs[0], out = node.outputs[0];
  if (graph.type(in) != graph.type(out)) return kNoValue;
  // A transpose may keep the shape and still move elements.
  if (op == "transpose" && graph.type(in).ndim() > 1) return kNoValue;
  return in;
}

// Equal keys: equal results.
std::string KeyOf(const Node& node) {
  std::string key = std::string(node.op->name) + "(";
  for (const ValueId v : node.inputs) key += std::to_string(v) + ",";
  return key + ")" + PrintValue(*node.attrs.type(), node.attrs.data(), true);
}

bool RemoveDead(Graph& graph) {
  std::vector<int32_t> uses = graph.UseCounts();
  bool changed = false;
  for (auto id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    if (node.op == nullptr || node.op->traits.side_effect) continue;
    bool used = false;
    for (const ValueId v : node.outputs) used = used || uses[static_cast<size_t>(v)] > 0;
    if (used) continue;
    for (const ValueId v : node.inputs) {
      if (v != kNoValue) --uses[static_cast<size_t>(v)];
    }
    graph.Erase(id);
    changed = true;
  }
  return changed;
}

bool MergeEqual(Graph& graph) {
  std::map<std::string, NodeId> first;
  bool changed = false;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    const Node& node = graph.node(id);
    if (node.op == nullptr) continue;
    if (const ValueId same = Identity(graph, node); same != kNoValue) {
      graph.ReplaceAllUses(node.outputs[0], same);
      graph.Erase(id);
      changed = true;
      continue;
    }
    if (node.op->traits.side_effect) continue;
    const auto [it, inserted] = first.emplace(KeyOf(node), id);
    if (inserted) continue;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      graph.ReplaceAllUses(node.outputs[o], graph.node(it->second).outputs[o]);
    }
    graph.Erase(id);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> Simplify(Module& module, const PassContext&) {
  bool changed = false;
  for (Program& p : module.programs) {
    bool here = MergeEqual(p.graph);
    here = RemoveDead(p.graph) || here;
    if (here) p.graph.Compact();
    changed = changed || here;
  }
  return changed;
}

}  // namespace capstan
