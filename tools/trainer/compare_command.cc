#include <fmt/format.h>

#include <algorithm>

#include "engine/base/status.h"
#include "engine/train/compare_activations.h"
#include "engine/train/trainer.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"
#include "tools/trainer/saved_model.h"

namespace capstan {
namespace {

// "12.3 %" of the golden's largest value.
std::string ShareOf(const LayerDifference& d) {
  return d.scale > 0 ? fmt::format("{:.2g}", d.difference / d.scale) : "-";
}

void PrintTable(const std::vector<LayerDifference>& layers) {
  size_t width = 5;
  for (const LayerDifference& d : layers) width = std::max(width, d.scope.size());
  Print(fmt::format("{:<{}}  {:<18} {:>12} {:>12}\n", "scope", width, "shape", "difference",
                    "relative"));
  for (const LayerDifference& d : layers) {
    if (d.shape != d.golden_shape) {
      Print(fmt::format("{:<{}}  {:<18} {} in the golden file\n", d.scope, width,
                        d.shape.ToString(), d.golden_shape.ToString()));
      continue;
    }
    Print(fmt::format("{:<{}}  {:<18} {:>12.3g} {:>12}{}\n", d.scope, width, d.shape.ToString(),
                      d.difference, ShareOf(d), d.differs ? "  differs" : ""));
  }
}

void PrintFirst(const LayerDifference& d, double tolerance) {
  if (d.shape != d.golden_shape) {
    Print(fmt::format("first difference: {} is {} here and {} in the golden file\n", d.scope,
                      d.shape.ToString(), d.golden_shape.ToString()));
    return;
  }
  Print(fmt::format(
      "first difference: {} by {:.4g}, {} of its largest value {:.4g} ({} allowed): at [{}] {:.7g} "
      "here, {:.7g} in the golden file\n",
      d.scope, d.difference, ShareOf(d), d.scale, tolerance, fmt::join(d.index, ","), d.ours,
      d.golden));
}

}  // namespace

absl::StatusOr<int> CompareCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  RETURN_IF_ERROR(CheckSupported(job));
  ASSIGN_OR_RETURN(const GoldenActivations golden, GoldenActivations::Open(line.golden),
                   "while reading --golden");
  CompileRequest request{.model = job.model.choice, .evaluate_batches = {golden.input_shape()}};
  ASSIGN_OR_RETURN(const Module module, BuildModule(request, tables));
  const Graph& graph = module.programs[0].graph;
  ASSIGN_OR_RETURN(request.keep, golden.ScopesOf(graph));
  ASSIGN_OR_RETURN(const SavedModel model, OpenSavedModel(job, line.checkpoint, request, tables,
                                                          {.dump = line.dump}, line.threads));
  ASSIGN_OR_RETURN(const std::vector<LayerDifference> layers,
                   CompareActivations(*model.session, golden, request.keep, line.tolerance));
  PrintTable(layers);
  const std::vector<std::string> strangers = golden.StrangersTo(graph);
  if (!strangers.empty()) Print(fmt::format("not in this model: {}\n", fmt::join(strangers, ", ")));
  const auto first = std::find_if(layers.begin(), layers.end(),
                                  [](const LayerDifference& d) { return d.differs; });
  if (first == layers.end()) {
    Print(fmt::format("{}: {} activations agree within {} of their largest values\n", model.source,
                      layers.size(), line.tolerance));
    return kExitDone;
  }
  Print(fmt::format(
      "{}: {} of {} activations differ\n", model.source,
      std::count_if(layers.begin(), layers.end(), [](const auto& d) { return d.differs; }),
      layers.size()));
  PrintFirst(*first, line.tolerance);
  return kExitDifference;
}

}  // namespace capstan
