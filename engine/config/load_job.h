// Reads a job file: YAML, its base, `-o` overrides, types, choices and cross checks. All mistakes
// come back at once, each as `file:line:col: full.path: what is wrong; what to do`. Safe from any
// thread; the table of choices must outlive the call only.
//
//   const absl::StatusOr<JobSpec> job = LoadJob("job.yaml", choices, {"train.epochs=1"});
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/choice_table.h"
#include "engine/config/job_spec.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

// `overrides` are "a.b=v" texts, applied in order. A file in a dialect (dialect.h) takes them by
// its own keys and by ours, the latter after all of the former.
absl::StatusOr<JobSpec> LoadJob(const std::string& path, const ChoiceTable& choices,
                                const std::vector<std::string>& overrides = {});

// As LoadJob from text; `file` names it in messages and gives the folder of `_base_`.
absl::StatusOr<JobSpec> ParseJob(std::string_view text, const std::string& file,
                                 const ChoiceTable& choices,
                                 const std::vector<std::string>& overrides = {});

}  // namespace capstan
