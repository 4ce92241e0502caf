// A trained model of a job, from one of its checkpoints or from a weights file: what `eval`,
// `predict` and `compare` run. Where a checkpoint holds moving averages, they are the weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/config/job_spec.h"
#include "engine/train/session.h"

namespace capstan {

struct SavedModel {
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> session;
  std::string
      source;  // "output/checkpoints/iteration_000001000 (iteration 1000)", or a weights file
  std::vector<std::string> class_names;
};

// `checkpoint`: "best", "latest", the folder of a checkpoint, a weights file, or "" for the best
// checkpoint if there is one, else the newest, else `model.pretrained`.
absl::StatusOr<SavedModel> OpenSavedModel(const JobSpec& job, const std::string& checkpoint,
                                          const CompileRequest& request, const EngineTables& tables,
                                          const SessionOptions& options, int threads);

// The checkpoint alone; a weights file is none.
absl::StatusOr<CheckpointReader> OpenCheckpoint(const JobSpec& job, const std::string& checkpoint);

// "output/checkpoints/best (iteration 1000, averaged weights)": which weights evaluation takes.
std::string DescribeSource(const CheckpointReader& reader);

}  // namespace capstan
