#include "engine/train/compile.h"

#include <fnmatch.h>

#include <algorithm>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/train/loss_options.h"

namespace capstan {
namespace {

// Cross-entropy of each sample; training smooths labels, evaluation does not.
ValueId LossOfSamples(Builder& b, ValueId logits, ValueId label, const Section& loss) {
  const auto& options = loss.options.As<CrossEntropyOptions>();
  const double smoothing = b.training() ? options.label_smoothing : 0.0;
  const OpDef& row = b.ops().Get("softmax_cross_entropy");
  const std::string attrs = "{label_smoothing=" + PrintValue(TypeOf<double>(), &smoothing) +
                            ", ignore_index=" + std::to_string(options.ignore_index) + "}";
  return b.Add1(row, AttrsFromText(row, attrs), {logits, label});
}

absl::StatusOr<Program> BuildProgram(ProgramKind kind, const Shape& batch,
                                     const CompileRequest& request, const ModelRow& model,
                                     const OpTable& ops) {
  Program program{.kind = kind, .shapes = ShapesText(batch)};
  program.graph.name = program.Name();
  Builder b(&program.graph, &ops, kind == ProgramKind::kMicro ? Mode::kTrain : Mode::kEvaluate);
  b.set_dtype(request.dtype);
  const ValueId image = b.Data("image", {request.dtype, batch});
  const ValueId logits = model.build(b, image, request.model.options);
  if (!request.loss.name.empty()) {
    const ValueId label = b.Data("label", {DType::kI64, {batch[0]}});
    auto scope = b.Enter("loss");
    ValueId loss = b.Add1("reduce_sum", {LossOfSamples(b, logits, label, request.loss)});
    const double weight = request.loss.options.As<CrossEntropyOptions>().weight;
    if (b.training() && weight != 1) {
      loss = b.Add1("scale", {loss, b.Full({}, weight, request.dtype)});
    }
    if (b.training()) {
      loss = b.Add1("scale", {loss, b.Data("inv_targets", {request.dtype, {}})});
    }
    RETURN_IF_ERROR(b.status());
    program.graph.AddOutput("loss", loss);
  }
  RETURN_IF_ERROR(b.status(), "while building model '{}' for batches of {}", model.name,
                  program.shapes);
  if (!b.training()) {
    program.graph.AddOutput("logits", logits);
    for (const std::string& scope : request.keep) {
      const NodeId node = LastNodeIn(program.graph, scope);
      if (node == kNoNode) return InvalidArgument("the model has no scope '{}'", scope);
      program.graph.AddOutput(scope, program.graph.node(node).outputs[0]);
    }
  }
  program.graph.Compact();
  return program;
}

// Names of parameters that a `freeze` pattern matches: a whole name or a part of the path
// ("layer1", "layer1/0"), with `*` and `?` where wanted.
absl::StatusOr<std::vector<std::string>> FrozenParams(const Module& module,
                                                      const std::vector<std::string>& patterns) {
  std::vector<std::string> frozen;
  for (const std::string& pattern : patterns) {
    std::string whole = pattern;
    std::replace(whole.begin(), whole.end(), '/', '.');
    const std::string inside = whole + ".*";
    const size_t before = frozen.size();
    for (const GraphInput& in : module.programs[0].graph.inputs()) {
      if (in.kind != InputKind::kParam) continue;
      if (fnmatch(whole.c_str(), in.name.c_str(), 0) == 0 ||
          fnmatch(inside.c_str(), in.name.c_str(), 0) == 0) {
        frozen.push_back(in.name);
      }
    }
    if (frozen.size() == before) {
      std::vector<std::string> names;
      for (const GraphInput& in : module.programs[0].graph.inputs()) {
        if (in.kind == InputKind::kParam) names.push_back(in.name);
      }
      const std::string nearest = Nearest(whole, names);
      return InvalidArgument(
          "model.freeze: '{}' matches no parameter{}; `explain --show "
          "parameters` lists them",
          pattern, nearest.empty() ? "" : " (did you mean " + nearest + "?)");
    }
  }
  return frozen;
}

}  // namespace

const ModelRow* FindModel(const std::vector<ModelRow>& models, std::string_view name) {
  const auto it =
      std::find_if(models.begin(), models.end(), [&](const ModelRow& m) { return name == m.name; });
  return it == models.end() ? nullptr : &*it;
}

std::string ShapesText(const Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.ndim(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return text;
}

NodeId LastNodeIn(const Graph& graph, std::string_view scope) {
  NodeId last = kNoNode;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const std::string_view at = graph.node(id).scope;
    const bool inside = at.size() > scope.size() && at[scope.size()] == '/';
    if (graph.node(id).op != nullptr && at.starts_with(scope) &&
        (at.size() == scope.size() || inside)) {
      last = id;
    }
  }
  return last;
}

absl::StatusOr<Module> BuildModule(const CompileRequest& request, const EngineTables& tables) {
  const ModelRow* model = FindModel(tables.models, request.model.name);
  CHECK(model != nullptr) << "the job reader lets only known models pass";
  Module module;
  for (const Shape& batch : request.train_batches) {
    ASSIGN_OR_RETURN(module.programs.emplace_back(),
                     BuildProgram(ProgramKind::kMicro, batch, request, *model, tables.ops));
  }
  for (const Shape& batch : request.evaluate_batches) {
    ASSIGN_OR_RETURN(module.programs.emplace_back(),
                     BuildProgram(ProgramKind::kEvaluate, batch, request, *model, tables.ops));
  }
  return module;
}

absl::StatusOr<CompileResult> Compile(const CompileRequest& request, const EngineTables& tables,
                                      const DumpOptions& dump) {
  CompileResult result;
  ASSIGN_OR_RETURN(result.module, BuildModule(request, tables));
  ASSIGN_OR_RETURN(const std::vector<std::string> frozen,
                   FrozenParams(result.module, request.frozen));
  const PassContext context{.ops = &tables.ops, .update = request.update, .frozen = frozen};
  RETURN_IF_ERROR(RunPipeline(DefaultPipeline(), context, dump, &result.module, &result.report));
  return result;
}

}  // namespace capstan
