// layout: puts 4-d values that image rows touch into channels_last, together with everything that
// elementwise rows tie to them. Parameters and states have one format in all programs.
#include <set>

#include "engine/passes/pass.h"

namespace capstan {
namespace {

bool IsImage(const Graph& graph, ValueId v) {
  return v != kNoValue && graph.type(v).ndim() == 4 && graph.type(v).dtype != DType::kOpaque;
}

// Spreads channels_last until nothing changes.
class LayoutSolver {
 public:
  explicit LayoutSolver(Module* module) : module_(*module) {}

  bool Run() {
    bool changed = false;
    do {
      again_ = false;
      for (Program& p : module_.programs) Spread(p.graph);
      changed = changed || again_;
    } while (again_);
    return changed;
  }

 private:
  void Mark(Graph& graph, ValueId v) {
    if (!IsImage(graph, v) || graph.type(v).format == MemoryFormat::kChannelsLast) return;
    graph.SetFormat(v, MemoryFormat::kChannelsLast);
    again_ = true;
  }

  void Spread(Graph& graph) {
    for (const Node& node : graph.nodes()) {
      const LayoutNeed need = node.op->traits.layout;
      if (need == LayoutNeed::kPlain) continue;
      std::vector<ValueId> arguments = node.inputs;
      arguments.insert(arguments.end(), node.outputs.begin(), node.outputs.end());
      bool image = need == LayoutNeed::kImage;
      for (const ValueId v : arguments) {
        image = image || (IsImage(graph, v) && graph.type(v).format == MemoryFormat::kChannelsLast);
      }
      if (!image) continue;
      for (const ValueId v : arguments) Mark(graph, v);
    }
    for (const StateUpdate& u : graph.updates()) {
      if (graph.type(u.value).format == MemoryFormat::kChannelsLast) Mark(graph, u.state);
    }
    for (const GraphInput& in : graph.inputs()) {
      if (in.kind == InputKind::kData) continue;
      const std::string owner(SlotOwner(in.name));
      if (graph.type(in.value).format == MemoryFormat::kChannelsLast) persistent_.insert(owner);
      if (persistent_.contains(owner)) Mark(graph, in.value);
    }
    // An update copies element by element only between equal formats.
    for (const StateUpdate& u : graph.updates()) {
      if (graph.type(u.state).format == MemoryFormat::kChannelsLast) Mark(graph, u.value);
    }
  }

  Module& module_;
  std::set<std::string> persistent_;  // parameters in channels_last
  bool again_ = false;
};

}  // namespace

absl::StatusOr<bool> ChooseLayout(Module& module, const PassContext&) {
  const bool changed = LayoutSolver(&module).Run();
  for (Bucket& bucket : module.buckets) {
    for (Segment& s : bucket.segments) {
      for (const Program& p : module.programs) {
        const GraphInput* in = p.graph.FindInput(s.param);
        if (in != nullptr) s.type.format = p.graph.type(in->value).format;
      }
    }
  }
  return changed;
}

}  // namespace capstan
