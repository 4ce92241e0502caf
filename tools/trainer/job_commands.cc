#include <fmt/format.h>

#include <cstdio>

#include "engine/base/status.h"
#include "engine/config/load_job.h"
#include "engine/config/render.h"
#include "engine/config/schema.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"

namespace capstan {

absl::StatusOr<JobSpec> ReadJob(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(JobSpec job, LoadJob(line.config, tables.choices, line.overrides));
  for (const IgnoredKey& key : job.ignored) {
    fmt::print(stderr, "{}: {}: ignored, because {}\n", key.at.ToString(), key.path, key.why);
  }
  return job;
}

absl::StatusOr<int> RenderCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  Print(Render(job));
  return kExitDone;
}

absl::StatusOr<int> SchemaCommand(const CommandLine& line, const EngineTables& tables) {
  const std::string text =
      line.show == "markdown" ? MarkdownReference(tables.choices) : JsonSchema(tables.choices);
  Print(text);
  return kExitDone;
}

}  // namespace capstan
