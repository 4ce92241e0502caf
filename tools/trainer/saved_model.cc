#include "tools/trainer/saved_model.h"

#include <filesystem>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/train/model_state.h"

namespace capstan {
namespace {

absl::StatusOr<CheckpointReader> OpenCheckpoint(const JobSpec& job, const std::string& checkpoint) {
  const std::string folder = CheckpointsFolder(job.output_dir);
  const bool has_best = std::filesystem::exists(folder + "/best");
  if (checkpoint == "best" || (checkpoint.empty() && has_best)) {
    return CheckpointReader::Open(folder + "/best");
  }
  if (!checkpoint.empty() && checkpoint != "latest") return CheckpointReader::Open(checkpoint);
  ASSIGN_OR_RETURN(NewestCheckpoint newest, OpenNewestCheckpoint(job.output_dir));
  if (!newest.reader.has_value()) {
    return NotFound("no checkpoint in {}; train first, or name one with --checkpoint", folder);
  }
  return *std::move(newest.reader);
}

}  // namespace

absl::StatusOr<SavedModel> OpenSavedModel(const JobSpec& job, const std::string& checkpoint,
                                          const CompileRequest& request, const EngineTables& tables,
                                          const SessionOptions& options, int threads) {
  ASSIGN_OR_RETURN(const CheckpointReader reader, OpenCheckpoint(job, checkpoint));
  SavedModel model{.device = MakeCpuDevice(threads)};
  ASSIGN_OR_RETURN(model.session, Session::Create(request, tables, options, model.device.get()));
  RETURN_IF_ERROR(RestoreState(model.session->executor(), StateGroup::kWeights, reader));
  model.checkpoint = reader.path();
  model.iteration = reader.iteration();
  model.class_names = reader.state().class_names;
  return model;
}

}  // namespace capstan
