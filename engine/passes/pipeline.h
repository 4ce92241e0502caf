// The compiler: runs the passes in order, verifies the module after each, checks that "unchanged"
// is true, and dumps text when asked.
//
//   PipelineReport report;
//   RETURN_IF_ERROR(RunPipeline(DefaultPipeline(), context, {.folder = "dump"}, &module, &report));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/passes/pass.h"

namespace capstan {

// `--dump=DIR[:regex]`: the module after each pass whose name matches, as DIR/03_layout.txt.
struct DumpOptions {
  std::string folder;  // empty: no dumps
  std::string regex;   // empty: every pass
};

struct PassRecord {
  std::string name;
  bool changed = false;
  int64_t nodes = 0;  // of all graphs, afterwards
  double seconds = 0;
};

struct PipelineReport {
  std::vector<PassRecord> passes;
  std::string ToString() const;
};

// The passes in order: the story of the compiler.
std::span<const Pass> DefaultPipeline();

absl::Status RunPipeline(std::span<const Pass> passes, const PassContext& context,
                         const DumpOptions& dump, Module* module, PipelineReport* report);

}  // namespace capstan
