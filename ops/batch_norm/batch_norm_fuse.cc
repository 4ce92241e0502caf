// Rewrites: relu, and the sum with a shortcut before it, become part of batch norm; relu's gradient
// becomes part of batch norm's. They work on differentiated graphs: what relu_grad reads is the
// result of relu, which the fused row makes.
#include "ops/add/add.h"
#include "ops/batch_norm/norm_call.h"
#include "ops/relu/relu.h"

namespace capstan {
namespace {

// The node that makes `v`, if it is of the row and nobody else reads `v`; else kNoNode.
NodeId OnlyFor(const Graph& graph, ValueId v, const OpDef& row, const std::vector<int32_t>& uses) {
  const NodeId id = graph.value(v).producer;
  if (id == kNoNode || graph.node(id).op != &row) return kNoNode;
  return uses[static_cast<size_t>(v)] == 1 ? id : kNoNode;
}

// Whether `v` is computed from a result of `node`.
bool DependsOn(const Graph& graph, ValueId v, NodeId node) {
  std::vector<bool> seen(graph.nodes().size(), false);
  std::vector<ValueId> open = {v};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    const NodeId producer = next == kNoValue ? kNoNode : graph.value(next).producer;
    if (producer == kNoNode || seen[static_cast<size_t>(producer)]) continue;
    if (producer == node) return true;
    seen[static_cast<size_t>(producer)] = true;
    for (const ValueId in : graph.node(producer).inputs) open.push_back(in);
  }
  return false;
}

// Puts a batch norm with relu and, if given, a residual in place of `norm`; its first result
// replaces `relu`.
template <typename Attrs>
void ReplaceByFused(Graph& graph, NodeId norm, NodeId relu, ValueId residual) {
  const Node old = graph.node(norm);
  const ValueId relu_result = graph.node(relu).outputs[0];
  Attrs attrs = old.attrs.As<Attrs>();
  attrs.relu = true;
  std::vector<ValueId> inputs = old.inputs;
  if (residual != kNoValue) inputs.push_back(residual);
  const std::vector<TensorType> types = CallOf(graph, old).outputs;
  graph.Erase(relu);
  graph.Erase(norm);
  const NodeId fused =
      graph.AddNode(*old.op, AnyStruct::Of(attrs), std::move(inputs), types, old.scope, "fuse");
  const std::vector<ValueId> made = graph.node(fused).outputs;
  graph.ReplaceAllUses(relu_result, made[0]);
  for (size_t i = 1; i < made.size(); ++i) graph.ReplaceAllUses(old.outputs[i], made[i]);
}

template <typename Attrs>
bool FuseRelu(Graph& graph, NodeId relu, const OpDef& row) {
  const NodeId norm = OnlyFor(graph, graph.node(relu).inputs[0], row, graph.UseCounts());
  if (norm == kNoNode || graph.node(norm).attrs.As<Attrs>().relu) return false;
  ReplaceByFused<Attrs>(graph, norm, relu, kNoValue);
  return true;
}

template <typename Attrs>
bool FuseAddRelu(Graph& graph, NodeId relu, const OpDef& row) {
  const std::vector<int32_t> uses = graph.UseCounts();
  const NodeId add = OnlyFor(graph, graph.node(relu).inputs[0], kAdd, uses);
  if (add == kNoNode) return false;
  const std::vector<ValueId> terms = graph.node(add).inputs;
  for (const auto& [normed, residual] : {std::pair(terms[0], terms[1]), {terms[1], terms[0]}}) {
    const NodeId norm = OnlyFor(graph, normed, row, uses);
    if (norm == kNoNode || graph.node(norm).inputs.size() > 5 ||
        graph.node(norm).attrs.As<Attrs>().relu || DependsOn(graph, residual, norm)) {
      continue;
    }
    ReplaceByFused<Attrs>(graph, norm, relu, residual);
    graph.Erase(add);
    return true;
  }
  return false;
}

}  // namespace

bool FuseReluIntoBatchNorm(Graph& graph, NodeId relu) {
  return FuseRelu<BatchNormAttrs>(graph, relu, kBatchNorm);
}

bool FuseAddReluIntoBatchNorm(Graph& graph, NodeId relu) {
  return FuseAddRelu<BatchNormAttrs>(graph, relu, kBatchNorm);
}

bool FuseReluIntoInference(Graph& graph, NodeId relu) {
  return FuseRelu<BatchNormInferenceAttrs>(graph, relu, kBatchNormInference);
}

bool FuseAddReluIntoInference(Graph& graph, NodeId relu) {
  return FuseAddRelu<BatchNormInferenceAttrs>(graph, relu, kBatchNormInference);
}

bool FuseReluGradIntoBatchNormGrad(Graph& graph, NodeId grad) {
  const Node old = graph.node(grad);
  BatchNormGradAttrs attrs = old.attrs.As<BatchNormGradAttrs>();
  const NodeId relu_grad = OnlyFor(graph, old.inputs[0], kReluGrad, graph.UseCounts());
  if (attrs.relu || relu_grad == kNoNode) return false;
  attrs.relu = true;
  const std::vector<ValueId> y_dy = graph.node(relu_grad).inputs;
  std::vector<ValueId> inputs(old.inputs.begin(), old.inputs.begin() + 5);
  inputs[0] = y_dy[1];
  inputs.push_back(y_dy[0]);
  const std::vector<TensorType> types = CallOf(graph, old).outputs;
  graph.Erase(grad);
  graph.Erase(relu_grad);
  const NodeId fused = graph.AddNode(kBatchNormGrad, AnyStruct::Of(attrs), std::move(inputs), types,
                                     old.scope, "fuse");
  for (size_t i = 0; i < old.outputs.size(); ++i) {
    graph.ReplaceAllUses(old.outputs[i], graph.node(fused).outputs[i]);
  }
  return true;
}

}  // namespace capstan
