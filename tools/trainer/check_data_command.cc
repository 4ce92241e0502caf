#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/base/status.h"
#include "engine/data/check_images.h"
#include "engine/train/image_data.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"

namespace capstan {
namespace {

constexpr size_t kFaultsShown = 1000;
constexpr size_t kClassesShown = 20;

// "3 missing file (first: x.jpg (list.txt:7))": a line for each kind of fault.
class FaultCounts {
 public:
  void Add(const std::string& kind, int64_t count, const std::string& example) {
    const auto [it, is_new] = kinds_.try_emplace(kind, count, example);
    if (!is_new) it->second.first += count;
  }
  std::string ToText() const {
    std::string text;
    for (const auto& [kind, entry] : kinds_) {
      text += fmt::format("  {:>8}  {}{}\n", entry.first, kind,
                          entry.second.empty() ? "" : "; first: " + entry.second);
    }
    return text;
  }

 private:
  std::map<std::string, std::pair<int64_t, std::string>> kinds_;
};

std::string ClassName(const ImageDataset& set, int64_t id) {
  const auto& names = set.class_names();
  if (id >= static_cast<int64_t>(names.size())) return std::to_string(id);
  return fmt::format("{} ({})", id, names[static_cast<size_t>(id)]);
}

// Lines joined by commas, the first kClassesShown of them.
std::string Listed(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < std::min(parts.size(), kClassesShown); ++i) {
    text += (i > 0 ? ", " : "") + parts[i];
  }
  if (parts.size() > kClassesShown) {
    text += fmt::format(" and {} more", parts.size() - kClassesShown);
  }
  return text;
}

std::string ClassesText(const ImageDataset& set, const std::vector<PictureFault>& faults,
                        int64_t model_classes) {
  const auto classes = static_cast<size_t>(std::max(set.classes(), model_classes));
  std::vector<int64_t> samples(classes), bad(classes);
  for (int64_t i = 0; i < set.size(); ++i) ++samples[static_cast<size_t>(set.Label(i))];
  for (const PictureFault& fault : faults) ++bad[static_cast<size_t>(set.Label(fault.index))];
  std::vector<std::string> with_faults, without_samples;
  for (size_t id = 0; id < classes; ++id) {
    const std::string name = ClassName(set, static_cast<int64_t>(id));
    if (bad[id] > 0) with_faults.push_back(fmt::format("{}: {} of {}", name, bad[id], samples[id]));
    if (samples[id] == 0) without_samples.push_back(name);
  }
  std::string text;
  if (!with_faults.empty()) text += "  bad by class: " + Listed(with_faults) + "\n";
  if (!without_samples.empty()) {
    text += fmt::format("  {} of {} classes have no sample: {}\n", without_samples.size(), classes,
                        Listed(without_samples));
  }
  return text;
}

// What a training or an evaluation would make of it.
std::string Verdict(const DatasetSpec& spec, int64_t refused, size_t bad, int64_t size) {
  if (refused > 0) return "  a run refuses this data set: each row of its list must be usable\n";
  if (bad == 0) return "";
  const BadSamplesSpec& rule = spec.bad_samples;
  if (rule.policy == BadSamplesSpec::Policy::kFail) {
    return "  a run ends at the first of them (bad_samples.policy: fail)\n";
  }
  const bool too_many = static_cast<double>(bad) > rule.limit * static_cast<double>(size);
  return fmt::format("  {} than bad_samples.limit {} allows: a run {}\n",
                     too_many ? "more" : "not more", rule.limit,
                     too_many ? "ends" : "leaves them out");
}

// Whether the data set is sound.
absl::StatusOr<bool> CheckSet(const DatasetSpec& spec, const std::string& name,
                              int64_t model_classes, uint64_t seed) {
  ASSIGN_OR_RETURN(const std::optional<ImageShape> generated, GeneratedShape(spec.choice));
  ASSIGN_OR_RETURN(const ImagePipeline pipeline, ImagePipeline::Create(spec.transforms, generated));
  absl::StatusOr<std::shared_ptr<const ImageDataset>> opened =
      OpenUsableRows(spec.choice, model_classes);
  if (!opened.ok()) {
    Print(fmt::format("{}: {}\n", name, MessageOf(opened.status())));
    return false;
  }
  const ImageDataset& set = **opened;
  ASSIGN_OR_RETURN(const std::vector<PictureFault> faults,
                   CheckImages(*opened, pipeline, {.num_workers = spec.loader.num_workers}, seed));

  FaultCounts counts;
  const RefusedRows& refused = set.refused();
  for (const std::string& row : refused.examples) Print(row + "\n");
  for (const auto& [kind, count] : refused.kinds) counts.Add(kind, count, "");
  for (size_t i = 0; i < faults.size(); ++i) {
    const PictureFault& fault = faults[i];
    // Only where it is shown: a large list is searched for the line.
    const std::string origin = i < kFaultsShown ? set.Describe(fault.index) : "";
    if (i < kFaultsShown) Print(fmt::format("{}: {}\n", origin, fault.reason));
    counts.Add(EnumNamesOf(fault.kind)[static_cast<size_t>(fault.kind)], 1, origin);
  }
  const int64_t bad = refused.count + static_cast<int64_t>(faults.size());
  const int64_t shown =
      static_cast<int64_t>(refused.examples.size() + std::min(faults.size(), kFaultsShown));
  if (bad > shown) Print(fmt::format("and {} more\n", bad - shown));
  const int64_t rows = set.size() + refused.count;
  Print(fmt::format("{}: {} of {} samples are sound\n", name, rows - bad, rows) + counts.ToText() +
        ClassesText(set, faults, model_classes) +
        Verdict(spec, refused.count, faults.size(), set.size()));
  return bad == 0;
}

}  // namespace

absl::StatusOr<int> CheckDataCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  RETURN_IF_ERROR(CheckTransforms(job));
  const ModelRow* model = FindModel(tables.models, job.model.choice.name);
  CHECK(model != nullptr) << "the job reader lets only known models pass";
  const int64_t classes = model->classes(job.model.choice.options);
  std::vector<std::pair<std::string, const DatasetSpec*>> sets;
  if (job.dataset.train.has_value()) sets.push_back({"dataset.train", &*job.dataset.train});
  if (job.dataset.eval.has_value()) sets.push_back({"dataset.eval", &*job.dataset.eval});
  if (sets.empty()) {
    return InvalidArgument("{}: the job names no data; give dataset.train or dataset.eval",
                           line.config);
  }
  bool sound = true;
  for (const auto& [name, spec] : sets) {
    ASSIGN_OR_RETURN(const bool good, CheckSet(*spec, fmt::format("{} ({})", name, job.Where(name)),
                                               classes, static_cast<uint64_t>(job.train.seed)));
    sound = sound && good;
  }
  return sound ? kExitDone : kExitBadData;
}

}  // namespace capstan
