#include "engine/config/load_job.h"

#include <optional>

#include "engine/base/status.h"
#include "engine/config/base_job.h"
#include "engine/config/dialect.h"
#include "engine/config/job_checks.h"
#include "engine/config/overrides.h"
#include "engine/config/typed_reader.h"

namespace capstan {

absl::StatusOr<JobSpec> LoadJob(const std::string& path, const ChoiceTable& choices,
                                const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParseJob(text, path, choices, overrides);
}

absl::StatusOr<JobSpec> ParseJob(std::string_view text, const std::string& file,
                                 const ChoiceTable& choices,
                                 const std::vector<std::string>& overrides) {
  CheckChoices(choices);
  Diagnostics diagnostics;
  std::optional<YamlNode> root = ParseYaml(text, file, &diagnostics);
  if (!root.has_value()) return diagnostics.ToStatus();
  MergeBase(file, &*root, &diagnostics);
  const TypeInfo& type = TypeOf<JobSpec>();
  JobSpec job;
  const Dialect* dialect = FindDialect(*root);
  const auto theirs = [&](const std::string& override) {
    return dialect != nullptr && IsOverrideOf(*dialect, override);
  };
  for (const std::string& override : overrides) {
    if (theirs(override)) ApplyDialectOverride(override, &*root, &diagnostics);
  }
  if (dialect != nullptr) root = Translate(*dialect, *root, choices, &job.ignored, &diagnostics);
  for (const std::string& override : overrides) {
    if (!theirs(override)) ApplyOverride(override, type, choices, &*root, &diagnostics);
  }
  ReadTyped(type, &*root, choices, &job, &job.sources, &diagnostics);
  // Rules between keys would only repeat what is wrong with one of them.
  if (diagnostics.empty()) CheckJob(job, &diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  return job;
}

}  // namespace capstan
