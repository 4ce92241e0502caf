// fuse: applies the rewrites that rows list until none fits.
#include "engine/passes/pass.h"

namespace capstan {
namespace {

// Tries every rewrite on every node once.
bool FuseOnce(Graph& graph, const OpTable& ops) {
  bool changed = false;
  for (const OpDef* op : ops.rows()) {
    for (const Rewrite& rewrite : op->rewrites) {
      // Nodes added meanwhile are looked at in the next round.
      const auto count = static_cast<NodeId>(graph.nodes().size());
      for (NodeId id = 0; id < count; ++id) {
        const OpDef* root = graph.node(id).op;
        if (root == nullptr || std::string_view(root->name) != rewrite.root) continue;
        changed = rewrite.apply(graph, id) || changed;
      }
    }
  }
  if (changed) graph.Compact();
  return changed;
}

}  // namespace

absl::StatusOr<bool> Fuse(Module& module, const PassContext& context) {
  bool changed = false;
  for (Program& p : module.programs) {
    while (FuseOnce(p.graph, *context.ops)) changed = true;
  }
  return changed;
}

}  // namespace capstan
