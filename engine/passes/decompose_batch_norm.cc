// decompose_batch_norm: writes batch_norm{stats=global} as statistics, which sum over the ranks'
// samples, and what is done with them. Where one rank has all samples, global and local statistics
// are the same and the rows stay whole.
#include "engine/base/status.h"
#include "engine/ir/builder.h"
#include "engine/passes/pass.h"

namespace capstan {
namespace {

// An attribute of a row that this folder knows by name only.
std::string AttrText(const Node& node, std::string_view name) {
  for (const FieldInfo& f : node.attrs.type()->fields()) {
    if (f.name == name) return PrintValue(*f.type, f.Get(node.attrs.data()));
  }
  CHECK(false) << node.op->name << " has no attribute " << name;
  return "";
}

class Decomposer {
 public:
  Decomposer(Graph* graph, const OpTable& ops) : graph_(*graph), b_(graph, &ops, Mode::kTrain) {
    b_.SetOrigin("decompose_batch_norm");
  }

  absl::StatusOr<bool> Run() {
    bool changed = false;
    const auto count = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = 0; id < count; ++id) {
      // A copy: adding nodes moves them.
      const Node node = graph_.node(id);
      if (node.op == nullptr) continue;
      const bool forward = std::string_view(node.op->name) == "batch_norm";
      const bool backward = std::string_view(node.op->name) == "batch_norm_grad";
      if ((!forward && !backward) || AttrText(node, "stats") != "global") continue;
      b_.SetScope(node.scope);
      Replace(id, node, forward ? Forward(node) : Backward(node));
      RETURN_IF_ERROR(b_.status());
      changed = true;
    }
    if (changed) graph_.Compact();
    return changed;
  }

 private:
  std::vector<ValueId> Add(std::string_view op, const std::string& attrs,
                           std::vector<ValueId> inputs) {
    const OpDef& row = b_.ops().Get(op);
    return b_.Add(row, AttrsFromText(row, attrs), std::move(inputs));
  }

  static ValueId Input(const Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : kNoValue;
  }

  // (x, scale, bias, running_mean, running_var, residual?) -> y, mean, invstd, new running ones.
  std::vector<ValueId> Forward(const Node& n) {
    const ValueId x = Input(n, 0);
    const std::vector<ValueId> sums = Add("batch_norm_stats", "{}", {x});
    const std::vector<ValueId> moments =
        Add("batch_norm_moments",
            "{momentum=" + AttrText(n, "momentum") + ", epsilon=" + AttrText(n, "epsilon") + "}",
            {Input(n, 3), Input(n, 4), sums[0], sums[1], sums[2]});
    const std::vector<ValueId> y =
        Add("batch_norm_apply", "{relu=" + AttrText(n, "relu") + "}",
            {x, Input(n, 1), Input(n, 2), moments[0], moments[1], Input(n, 5)});
    return {y[0], moments[0], moments[1], moments[2], moments[3]};
  }

  // (dy, x, scale, mean, invstd, y?) -> dx, dscale, dbias.
  std::vector<ValueId> Backward(const Node& n) {
    const ValueId mean = Input(n, 3);
    const Node* moments = graph_.ProducerOf(mean);
    CHECK(moments != nullptr && std::string_view(moments->op->name) == "batch_norm_moments")
        << "the mean of a global batch_norm_grad comes from the forward row";
    const ValueId count = moments->inputs[2];
    const std::string relu = "{relu=" + AttrText(n, "relu") + "}";
    const std::vector<ValueId> sums = Add(
        "batch_norm_grad_stats", relu, {n.inputs[0], n.inputs[1], mean, n.inputs[4], Input(n, 5)});
    const std::vector<ValueId> dx = Add("batch_norm_grad_apply", relu,
                                        {n.inputs[0], n.inputs[1], n.inputs[2], mean, n.inputs[4],
                                         count, sums[0], sums[1], Input(n, 5)});
    return {dx[0], sums[1], sums[0]};
  }

  void Replace(NodeId id, const Node& node, const std::vector<ValueId>& by) {
    for (size_t i = 0; i < by.size(); ++i) graph_.ReplaceAllUses(node.outputs[i], by[i]);
    graph_.Erase(id);
  }

  Graph& graph_;
  Builder b_;
};

}  // namespace

absl::StatusOr<bool> DecomposeBatchNorm(Module& module, const PassContext& context) {
  if (context.data_ranks == 1) return false;
  bool changed = false;
  for (Program& p : module.programs) {
    ASSIGN_OR_RETURN(const bool here, Decomposer(&p.graph, *context.ops).Run());
    changed = changed || here;
  }
  return changed;
}

}  // namespace capstan
