#include "tools/trainer/saved_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "engine/base/status.h"
#include "engine/train/model_state.h"
#include "engine/train/pretrained.h"

namespace capstan {
namespace {

// The weights file to read; none: a checkpoint.
absl::StatusOr<std::string> WeightsFileFor(const JobSpec& job, const std::string& checkpoint) {
  if (checkpoint.empty()) {
    if (!job.model.pretrained.has_value()) return std::string();
    ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> all, ListCheckpoints(job.output_dir));
    return all.empty() ? *job.model.pretrained : std::string();
  }
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(checkpoint, error) ||
                       std::filesystem::is_regular_file(checkpoint + ".pdparams", error);
  return is_file ? checkpoint : std::string();
}

absl::Status LoadWeightsFile(const JobSpec& job, const std::string& path,
                             const EngineTables& tables, SavedModel* model) {
  const ModelRow* row = FindModel(tables.models, job.model.choice.name);
  CHECK(row != nullptr) << "the job reader lets only known models pass";
  ASSIGN_OR_RETURN(const PretrainedReport report,
                   LoadPretrained(model->session->executor(), *row, path));
  if (report.left() > 0) {
    return InvalidArgument("{}: it fits only in part, and nothing was trained here: {}",
                           report.source, fmt::join(report.problems, "; "));
  }
  model->source = report.source;
  return absl::OkStatus();
}

}  // namespace

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

absl::StatusOr<SavedModel> OpenSavedModel(const JobSpec& job, const std::string& checkpoint,
                                          const CompileRequest& request, const EngineTables& tables,
                                          const SessionOptions& options, int threads) {
  ASSIGN_OR_RETURN(const std::string weights, WeightsFileFor(job, checkpoint));
  std::optional<CheckpointReader> reader;
  if (weights.empty()) {
    ASSIGN_OR_RETURN(reader, OpenCheckpoint(job, checkpoint));
  }
  SavedModel model{.device = MakeCpuDevice(threads)};
  ASSIGN_OR_RETURN(model.session, Session::Create(request, tables, options, model.device.get()));
  if (!reader.has_value()) {
    RETURN_IF_ERROR(LoadWeightsFile(job, weights, tables, &model));
    return model;
  }
  RETURN_IF_ERROR(RestoreState(model.session->executor(), StateGroup::kWeights, *reader));
  model.source = fmt::format("{} (iteration {})", reader->path(), reader->iteration());
  model.class_names = reader->state().class_names;
  return model;
}

}  // namespace capstan
