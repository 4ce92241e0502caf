#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/status.h"
#include "engine/config/load_job.h"
#include "engine/data/image_source.h"
#include "engine/train/trainer.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"
#include "tools/trainer/saved_model.h"

namespace capstan {
namespace {

std::vector<double> Softmax(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  double sum = 0;
  for (const float x : logits) sum += shares.emplace_back(std::exp(double(x) - most));
  for (double& s : shares) s /= sum;
  return shares;
}

// "7 (98.21 %), 1 (0.93 %)": the likeliest classes, equal ones by class id.
std::string TopClasses(const std::vector<double>& shares, int64_t count,
                       const std::vector<std::string>& names) {
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(count)));
  std::string text;
  for (const size_t id : order) {
    text += fmt::format("{}{} ({:.2f} %)", text.empty() ? "" : ", ",
                        id < names.size() ? names[id] : std::to_string(id), shares[id] * 100);
  }
  return text;
}

}  // namespace

absl::StatusOr<int> PredictCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, LoadJob(line.config, tables.choices, line.overrides));
  RETURN_IF_ERROR(CheckSupported(job));
  if (!job.dataset.eval.has_value()) {
    return InvalidArgument(
        "{}: predict prepares pictures as `dataset.eval.transforms` say; the "
        "job has no dataset.eval",
        line.config);
  }
  ASSIGN_OR_RETURN(const ImagePipeline pipeline,
                   ImagePipeline::Create(job.dataset.eval->transforms), "while reading {}",
                   job.Where("dataset.eval.transforms"));
  const ImageShape& shape = pipeline.output();
  const CompileRequest request{
      .model = job.model.choice,
      .evaluate_batches = {{1, shape.channels, shape.height, shape.width}}};
  ASSIGN_OR_RETURN(const SavedModel model, OpenSavedModel(job, line.checkpoint, request, tables,
                                                          {.dump = line.dump}, line.threads));
  for (const std::string& path : line.pictures) {
    absl::StatusOr<HostTensor> picture = ReadPicture(path, pipeline);
    // A picture that cannot be read is bad data, whatever is wrong with it.
    if (!picture.ok()) return WithCode(picture.status(), absl::StatusCode::kDataLoss);
    ASSIGN_OR_RETURN(const EvaluateResult out,
                     model.session->RunEvaluate({.image = picture->view()}));
    fmt::print("{}: {}\n", path,
               TopClasses(Softmax(out.logits.Elements<float>()), line.top, model.class_names));
  }
  return kExitDone;
}

}  // namespace capstan
