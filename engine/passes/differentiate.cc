// differentiate: appends the backward of `loss` to each micro program, and the gradients of its
// parameters as updates of `P@grad`. The program becomes two: the first batch of an update
// overwrites the gradients, further ones add to them.
#include <algorithm>

#include "engine/base/status.h"
#include "engine/ir/grad.h"
#include "engine/passes/pass.h"

namespace capstan {
namespace {

class Differentiator {
 public:
  Differentiator(Graph* graph, const PassContext& context)
      : graph_(*graph), context_(context), builder_(graph, context.ops, Mode::kTrain) {
    builder_.SetOrigin("differentiate");
  }

  absl::Status Run() {
    const ValueId loss = graph_.FindOutput("loss");
    CHECK_NE(loss, kNoValue) << "a micro program has an output 'loss'";
    CHECK(graph_.type(loss).ndim() == 0) << "the loss is a scalar";
    MarkNeeded();
    grads_.assign(graph_.values().size(), kNoValue);
    const auto forward_nodes = static_cast<NodeId>(graph_.nodes().size());
    AddTo(loss, builder_.Full({}, 1.0, graph_.type(loss).dtype));
    for (NodeId id = forward_nodes - 1; id >= 0; --id) Visit(id);
    return builder_.status();
  }

  bool trained(const GraphInput& input) const {
    return input.kind == InputKind::kParam &&
           std::find(context_.frozen.begin(), context_.frozen.end(), input.name) ==
               context_.frozen.end();
  }

  // The gradient of a trained parameter; zeros where the loss does not depend on it.
  ValueId GradOf(const GraphInput& param) {
    builder_.SetScope("");
    const ValueId grad = grads_[static_cast<size_t>(param.value)];
    if (grad != kNoValue) return grad;
    const TensorType& type = graph_.type(param.value);
    return builder_.Full(type.shape, 0.0, type.dtype);
  }

  Builder& builder() { return builder_; }

 private:
  // Values that depend on a trained parameter.
  void MarkNeeded() {
    needed_.assign(graph_.values().size(), false);
    for (const GraphInput& in : graph_.inputs()) {
      if (trained(in)) needed_[static_cast<size_t>(in.value)] = true;
    }
    for (const Node& node : graph_.nodes()) {
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
        return v != kNoValue && needed_[static_cast<size_t>(v)];
      });
      for (const ValueId v : node.outputs) {
        needed_[static_cast<size_t>(v)] = any && IsFloat(graph_.type(v).dtype);
      }
    }
  }

  void AddTo(ValueId value, ValueId grad) {
    ValueId& sum = grads_[static_cast<size_t>(value)];
    sum = sum == kNoValue ? grad : builder_.Add1("add", {sum, grad});
  }

  void Visit(NodeId id) {
    // A copy: building gradients moves the nodes.
    const Node node = graph_.node(id);
    std::vector<ValueId> output_grads;
    bool any = false;
    for (const ValueId v : node.outputs) {
      output_grads.push_back(grads_[static_cast<size_t>(v)]);
      any = any || output_grads.back() != kNoValue;
    }
    if (!any) return;
    std::vector<bool> needed;
    for (const ValueId v : node.inputs) {
      needed.push_back(v != kNoValue && needed_[static_cast<size_t>(v)]);
    }
    if (std::find(needed.begin(), needed.end(), true) == needed.end()) return;
    builder_.SetScope(node.scope);
    GradContext g(&builder_, id, std::move(output_grads), needed);
    node.op->grad(g);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (needed[i] && g.grads()[i] != kNoValue) AddTo(node.inputs[i], g.grads()[i]);
    }
  }

  Graph& graph_;
  const PassContext& context_;
  Builder builder_;
  std::vector<bool> needed_;
  std::vector<ValueId> grads_;  // by forward value
};

// One of the two variants of a differentiated program.
absl::StatusOr<Program> DifferentiateProgram(const Program& micro, ProgramKind kind,
                                             const PassContext& context) {
  Program program{kind, micro.shapes, micro.graph};
  program.graph.name = program.Name();
  Differentiator d(&program.graph, context);
  RETURN_IF_ERROR(d.Run(), "while differentiating {}", micro.Name());
  const std::vector<GraphInput> inputs = program.graph.inputs();
  for (const GraphInput& in : inputs) {
    if (!d.trained(in)) continue;
    ValueId grad = d.GradOf(in);
    const ValueId state =
        program.graph.AddInput({.kind = InputKind::kState, .name = SlotName(in.name, "grad")},
                               program.graph.type(in.value));
    if (kind == ProgramKind::kMicroNext) grad = d.builder().Add1("add", {state, grad});
    program.graph.AddUpdate(state, grad);
  }
  RETURN_IF_ERROR(d.builder().status());
  program.graph.Compact();
  return program;
}

}  // namespace

absl::StatusOr<bool> Differentiate(Module& module, const PassContext& context) {
  std::vector<Program> programs;
  bool changed = false;
  for (Program& p : module.programs) {
    if (p.kind != ProgramKind::kMicro) {
      programs.push_back(std::move(p));
      continue;
    }
    for (const ProgramKind kind : {ProgramKind::kMicroFirst, ProgramKind::kMicroNext}) {
      ASSIGN_OR_RETURN(programs.emplace_back(), DifferentiateProgram(p, kind, context));
    }
    changed = true;
  }
  module.programs = std::move(programs);
  return changed;
}

}  // namespace capstan
