#include "engine/train/resume_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace capstan {
namespace {

struct Rule {
  const char* path;  // of a key, or of a map with all its keys
  ChangeEffect effect;
  const char* note = "";
  bool forgets_best = false;
};

// As ChangedKeys writes them.
constexpr char kNotSet[] = "not set";
constexpr char kNull[] = "null";

constexpr char kForgetsBest[] = "the best so far is forgotten";

// The first rule that fits a key holds; a key without a rule is taken over.
constexpr Rule kRules[] = {
    {"model.pretrained", ChangeEffect::kNotUsed, "the weights are those of the checkpoint"},
    {"model.freeze", ChangeEffect::kTakenOver},
    {"model", ChangeEffect::kRefused, "a model cannot change on resuming"},
    {"optimizer.name", ChangeEffect::kRefused,
     "the state of one optimizer is not that of another one"},
    {"train.seed", ChangeEffect::kTakenOver, "for the draws from here on"},
    {"train.deterministic", ChangeEffect::kHarmless},
    {"dataset.train.loader", ChangeEffect::kHarmless},
    {"dataset.eval.loader", ChangeEffect::kHarmless},
    {"dataset.eval.batch_size", ChangeEffect::kHarmless},
    {"dataset.eval.bad_samples", ChangeEffect::kTakenOver},
    {"dataset.eval", ChangeEffect::kTakenOver, kForgetsBest, true},
    {"eval.metric", ChangeEffect::kTakenOver, kForgetsBest, true},
    {"version", ChangeEffect::kHarmless},
    {"name", ChangeEffect::kHarmless},
    {"checkpoint", ChangeEffect::kHarmless},
    {"log", ChangeEffect::kHarmless},
    {"watchdog_s", ChangeEffect::kHarmless},
    {"output_dir", ChangeEffect::kHarmless},
};

// Adam, AdamW and LAMB keep the same two moments.
bool ShareState(std::string_view a, std::string_view b) {
  constexpr std::array<std::string_view, 3> kMoments = {"adam", "adamw", "lamb"};
  const auto has = [&](std::string_view name) {
    return std::find(kMoments.begin(), kMoments.end(), name) != kMoments.end();
  };
  return has(a) && has(b);
}

JobChange Judge(const ChangedKey& key, bool* forgets_best) {
  if (key.path == "optimizer.name" && ShareState(key.before, key.after)) {
    return {key, ChangeEffect::kTakenOver, "with the moments so far"};
  }
  if (key.path == "train.ema.decay" && key.after == kNotSet) {
    return {key, ChangeEffect::kTakenOver, "the averages of the checkpoint are left out"};
  }
  if (key.path == "train.ema.decay" && key.before == kNotSet) {
    return {key, ChangeEffect::kTakenOver, "averages begin at the weights of the checkpoint"};
  }
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
    const std::string_view path = r.path;
    return key.path == path || (key.path.starts_with(path) && key.path[path.size()] == '.');
  });
  if (rule == std::end(kRules)) return {key, ChangeEffect::kTakenOver, ""};
  *forgets_best = *forgets_best || rule->forgets_best;
  return {key, rule->effect, rule->note};
}

const char* NameOf(ChangeEffect effect) {
  switch (effect) {
    case ChangeEffect::kTakenOver:
      return "taken over";
    case ChangeEffect::kHarmless:
      return "harmless";
    case ChangeEffect::kNotUsed:
      return "not used";
    case ChangeEffect::kRefused:
      return "refused";
  }
  return "?";
}

}  // namespace

ResumeReport CompareForResume(const JobSpec& before, const JobSpec& now) {
  ResumeReport report;
  for (const ChangedKey& key : ChangedKeys(before, now)) {
    // A map that was null is now there with its keys, or the other way round.
    const bool map = (key.before == kNull && key.after == kNotSet) ||
                     (key.before == kNotSet && key.after == kNull);
    if (map) continue;
    report.changes.push_back(Judge(key, &report.forgets_best));
  }
  return report;
}

bool ResumeReport::Changed(std::string_view path) const {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const JobChange& c) { return c.key.path == path; });
}

std::vector<std::string> ResumeReport::Lines() const {
  std::vector<std::string> lines;
  for (const JobChange& c : changes) {
    if (c.effect == ChangeEffect::kRefused) continue;
    lines.push_back(fmt::format("job changed: {}: {} -> {} ({}{}{})", c.key.path, c.key.before,
                                c.key.after, NameOf(c.effect), c.note.empty() ? "" : ": ", c.note));
  }
  return lines;
}

std::string ResumeReport::Summary() const {
  std::string text;
  for (const ChangeEffect effect :
       {ChangeEffect::kTakenOver, ChangeEffect::kHarmless, ChangeEffect::kNotUsed}) {
    const auto count = std::count_if(changes.begin(), changes.end(),
                                     [&](const JobChange& c) { return c.effect == effect; });
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, NameOf(effect));
  }
  return text;
}

absl::Status ResumeReport::Refusal(const JobSpec& job) const {
  Diagnostics diagnostics;
  for (const JobChange& c : changes) {
    if (c.effect != ChangeEffect::kRefused) continue;
    diagnostics.Add(job.sources.Find(c.key.path), c.key.path,
                    fmt::format("was {} when the checkpoint was written, now {}; {}. Set it back, "
                                "or start anew with `checkpoint.resume: none`",
                                c.key.before, c.key.after, c.note));
  }
  return diagnostics.ToStatus();
}

}  // namespace capstan
