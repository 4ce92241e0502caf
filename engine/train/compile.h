// From a job to a module: the graphs of a training job on one rank, one program for each kind of
// work and each shape of batch. The pipeline (engine/passes) and BuildPlan take it from there.
//
// Graph inputs: `image` f32[n,c,h,w], `label` i64[n], `inv_targets` f32[] (1 / valid targets of the
// whole update). Outputs: `loss` (micro: its part of the update's mean; evaluate: the sum over the
// batch), `logits` (evaluate).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/choice_table.h"
#include "engine/ir/module.h"
#include "engine/kernel/kernel_row.h"
#include "engine/passes/pipeline.h"
#include "engine/plan/plan.h"
#include "engine/train/model_row.h"

namespace capstan {

// What the tool knows and the engine is handed.
struct EngineTables {
  OpTable ops;
  KernelTable kernels;
  std::vector<ModelRow> models;
  ChoiceTable choices;  // what a job may name
};

// The model of that name, or null.
const ModelRow* FindModel(const std::vector<ModelRow>& models, std::string_view name);

// What to compile. Shapes are those of whole batches: {8, 3, 32, 32}.
struct CompileRequest {
  Section model;  // name and options
  Section loss;   // empty name: no training
  UpdateRule update;
  std::vector<std::string> frozen;  // patterns of parameter names
  std::vector<Shape> train_batches;
  std::vector<Shape> evaluate_batches;
  // Scopes whose results the evaluate programs give as outputs of these names, beside `logits`.
  std::vector<std::string> keep;
  DType dtype = DType::kF32;
};

// "8x3x32x32": how a program's shape bucket is named.
std::string ShapesText(const Shape& shape);

// The node that makes the result of a part of the model: the last one in this scope or inside it;
// kNoNode where there is no such scope.
NodeId LastNodeIn(const Graph& graph, std::string_view scope);

// The logical graphs, before any pass. Errors name the part of the model at fault.
absl::StatusOr<Module> BuildModule(const CompileRequest& request, const EngineTables& tables);

struct CompileResult {
  Module module;  // after all passes
  PipelineReport report;
};

// BuildModule and the default pipeline.
absl::StatusOr<CompileResult> Compile(const CompileRequest& request, const EngineTables& tables,
                                      const DumpOptions& dump);

}  // namespace capstan
