// A trained model of a job, from one of its checkpoints: what `eval` and `predict` run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/job_spec.h"
#include "engine/train/session.h"

namespace capstan {

struct SavedModel {
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> session;
  std::string checkpoint;  // its folder
  int64_t iteration = 0;
  std::vector<std::string> class_names;
};

// `checkpoint`: "best", "latest", a path, or "" for the best one if there is one, else the newest.
absl::StatusOr<SavedModel> OpenSavedModel(const JobSpec& job, const std::string& checkpoint,
                                          const CompileRequest& request, const EngineTables& tables,
                                          const SessionOptions& options, int threads);

}  // namespace capstan
