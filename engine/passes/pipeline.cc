#include "engine/passes/pipeline.h"

#include <fmt/format.h>
#include <regex.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/base/check.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

// Later passes have their places here: `precision` and `place_pipeline` after `optimizer`, then
// `shard`, `insert_collectives` and `recompute`; `bucket_and_overlap` after `fuse`.
constexpr Pass kPasses[] = {
    {"simplify", Stage::kLogical, Stage::kLogical, Simplify},
    {"differentiate", Stage::kLogical, Stage::kDifferentiated, Differentiate},
    {"simplify_gradients", Stage::kDifferentiated, Stage::kDifferentiated, Simplify},
    {"optimizer", Stage::kDifferentiated, Stage::kOptimized, AddOptimizer},
    {"average", Stage::kOptimized, Stage::kOptimized, AddAverages},
    {"decompose_batch_norm", Stage::kOptimized, Stage::kOptimized, DecomposeBatchNorm},
    {"layout", Stage::kOptimized, Stage::kLowered, ChooseLayout},
    {"fuse", Stage::kLowered, Stage::kLowered, Fuse},
};

absl::Status Verify(const Module& module, Stage stage) {
  for (const Program& p : module.programs) RETURN_IF_ERROR(VerifyGraph(p.graph, stage));
  return absl::OkStatus();
}

// Whether the POSIX extended regular expression `pattern` is found in `text`.
absl::StatusOr<bool> Found(const std::string& pattern, const std::string& text) {
  regex_t compiled;
  const int code = regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
  if (code != 0) {
    char reason[256];
    regerror(code, &compiled, reason, sizeof(reason));
    return InvalidArgument("--dump: '{}' is not a regular expression ({})", pattern, reason);
  }
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

absl::Status Dump(const DumpOptions& options, size_t number, const std::string& pass,
                  const Module& module) {
  if (options.folder.empty()) return absl::OkStatus();
  if (!options.regex.empty()) {
    ASSIGN_OR_RETURN(const bool wanted, Found(options.regex, pass));
    if (!wanted) return absl::OkStatus();
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  const std::string path = fmt::format("{}/{:02}_{}.txt", options.folder, number, pass);
  std::ofstream file(path);
  file << PrintModule(module);
  file.flush();
  return file.good() ? absl::OkStatus() : FailedPrecondition("--dump: cannot write {}", path);
}

}  // namespace

std::string PipelineReport::ToString() const {
  std::string text = fmt::format("{:<24} {:>8} {:>10}  {}\n", "pass", "nodes", "ms", "");
  for (const PassRecord& p : passes) {
    text += fmt::format("{:<24} {:>8} {:>10.2f}  {}\n", p.name, p.nodes, p.seconds * 1e3,
                        p.changed ? "" : "unchanged");
  }
  return text;
}

std::span<const Pass> DefaultPipeline() { return kPasses; }

absl::Status RunPipeline(std::span<const Pass> passes, const PassContext& context,
                         const DumpOptions& dump, Module* module, PipelineReport* report) {
  Stage stage = Stage::kLogical;
  RETURN_IF_ERROR(Verify(*module, stage), "while verifying the model's graph");
  RETURN_IF_ERROR(Dump(dump, 0, "model", *module));
  for (size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    CHECK(pass.stage_in == stage) << "pass " << pass.name << " needs stage "
                                  << NameOf(pass.stage_in) << ", the module is " << NameOf(stage);
    const uint64_t before = HashOf(*module);
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(const bool changed, pass.fn(*module, context), "while running pass {}",
                     pass.name);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    stage = pass.stage_out;
    RETURN_IF_ERROR(Verify(*module, stage), "while verifying after pass {}", pass.name);
    CHECK(changed || HashOf(*module) == before)
        << "pass " << pass.name << " says unchanged but is not";
    RETURN_IF_ERROR(Dump(dump, i + 1, pass.name, *module));
    PassRecord record{.name = pass.name, .changed = changed, .seconds = elapsed.count()};
    for (const Program& p : module->programs) {
      record.nodes += static_cast<int64_t>(p.graph.nodes().size());
    }
    report->passes.push_back(std::move(record));
  }
  return absl::OkStatus();
}

}  // namespace capstan
