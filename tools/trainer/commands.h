// The commands of the trainer, one file each. They Print to standard output; errors come back and
// are printed once, by main.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/job_spec.h"
#include "engine/passes/pipeline.h"
#include "engine/train/compile.h"

namespace capstan {

struct CommandLine {
  std::string config;                  // -c
  std::vector<std::string> overrides;  // -o
  DumpOptions dump;                    // --dump
  int threads = 0;                     // --threads; 0: all cores
  std::string checkpoint;              // --checkpoint: best, latest or a path; "" chooses
  std::string to;                      // export
  std::string golden;                  // compare
  double tolerance = 1e-4;             // compare
  std::vector<std::string> pictures;   // predict
  int64_t top = 5;                     // predict
  std::string show = "summary";        // explain
  int64_t points = 5;                  // verify-resume
  int64_t iterations = 20;             // verify-resume
  std::string work_dir;                // verify-resume
};

// To standard output. Main reports what could not be written.
void Print(const std::string& text);

// The job of `-c` and `-o`. Keys that have no meaning here are listed on standard error.
absl::StatusOr<JobSpec> ReadJob(const CommandLine& line, const EngineTables& tables);

// Each returns an exit status.
absl::StatusOr<int> TrainCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> EvaluateCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> PredictCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> CompareCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> ExportCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> ExplainCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> VerifyResumeCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> CheckDataCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> RenderCommand(const CommandLine& line, const EngineTables& tables);
absl::StatusOr<int> SchemaCommand(const CommandLine& line, const EngineTables& tables);

}  // namespace capstan
