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

std::string DescribeSource(const CheckpointReader& reader) {
  const bool averaged = reader.Group(NameOf(StateGroup::kEma)) != nullptr;
  return fmt::format("{} (iteration {}{})", reader.path(), reader.iteration(),
                     averaged ? ", averaged weights" : "");
}

absl::StatusOr<CheckpointReader> OpenCheckpoint(const JobSpec& job, const std::string& checkpoint) {
  const bool newest_wanted = checkpoint == "latest";
  if (!checkpoint.empty() && !newest_wanted && checkpoint != "best") {
    return CheckpointReader::Open(checkpoint);
  }
  const std::string folder = CheckpointsFolder(job.output_dir);
  if (!newest_wanted && NameExists(FollowLink(folder + "/best"))) {
    return CheckpointReader::Open(folder + "/best");
  }
  ASSIGN_OR_RETURN(NewestCheckpoint newest, OpenNewestCheckpoint(job.output_dir));
  if (!newest.reader.has_value()) {
    return NotFound(
        "no checkpoint in {} (output_dir of {}); train first, or name one with "
        "--checkpoint",
        folder, job.Where("output_dir"));
  }
  if (checkpoint == "best") {
    return NotFound(
        "no best checkpoint in {}, for no evaluation was saved yet; --checkpoint "
        "latest takes the newest one",
        folder);
  }
  for (const std::string& why : newest.passed_over) {
    fmt::print(stderr, "trainer: warning: {}\n", why);
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
  RETURN_IF_ERROR(RestoreForEvaluation(model.session->executor(), *reader));
  model.source = DescribeSource(*reader);
  model.class_names = reader->state().class_names;
  return model;
}

}  // namespace capstan
