#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "engine/base/status.h"
#include "engine/checkpoint/file_io.h"
#include "engine/data/file.h"
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

// A folder stands for the JPEG and PNG files that lie in it, sorted by name.
absl::StatusOr<std::vector<std::string>> PicturePaths(const std::vector<std::string>& given) {
  if (given.empty()) {
    return InvalidArgument(
        "predict needs pictures: trainer predict -c job.yaml a.jpg b.png folder");
  }
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      paths.push_back(path);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(path));
    const size_t before = paths.size();
    for (const std::string& name : names) {
      std::string end = name.substr(std::min(name.size(), name.rfind('.')));
      std::transform(end.begin(), end.end(), end.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      const bool picture = end == ".jpg" || end == ".jpeg" || end == ".png";
      if (picture && !name.starts_with('.')) paths.push_back(JoinPath(path, name));
    }
    if (paths.size() == before) {
      return DataLoss("{}: no .jpg, .jpeg or .png file in this folder", path);
    }
  }
  return paths;
}

}  // namespace

absl::StatusOr<int> PredictCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  RETURN_IF_ERROR(CheckSupported(job));
  if (!job.dataset.eval.has_value()) {
    return InvalidArgument(
        "{}: predict prepares pictures as `dataset.eval.transforms` say; the "
        "job has no dataset.eval",
        line.config);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> pictures, PicturePaths(line.pictures));
  ASSIGN_OR_RETURN(const ImagePipeline pipeline,
                   ImagePipeline::Create(job.dataset.eval->transforms), "while reading {}",
                   job.Where("dataset.eval.transforms"));
  const ImageShape& shape = pipeline.output();
  const CompileRequest request{
      .model = job.model.choice,
      .evaluate_batches = {{1, shape.channels, shape.height, shape.width}}};
  ASSIGN_OR_RETURN(const SavedModel model, OpenSavedModel(job, line.checkpoint, request, tables,
                                                          {.dump = line.dump}, line.threads));
  std::vector<std::string> unreadable;
  for (const std::string& path : pictures) {
    const absl::StatusOr<HostTensor> picture = ReadPicture(path, pipeline);
    if (!picture.ok()) {
      unreadable.push_back(MessageOf(picture.status()));
      continue;
    }
    ASSIGN_OR_RETURN(const EvaluateResult out,
                     model.session->RunEvaluate({.image = picture->view()}));
    Print(fmt::format(
        "{}: {}\n", path,
        TopClasses(Softmax(out.logits.Elements<float>()), line.top, model.class_names)));
  }
  if (unreadable.empty()) return kExitDone;
  return DataLoss("{} of {} picture(s) cannot be read\n  {}", unreadable.size(), pictures.size(),
                  fmt::join(unreadable, "\n  "));
}

}  // namespace capstan
