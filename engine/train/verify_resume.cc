#include "engine/train/verify_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/base/random.h"
#include "engine/base/status.h"
#include "engine/train/model_state.h"

namespace capstan {
namespace {

// What a run has become after an iteration.
struct Mark {
  double loss = 0;
  uint64_t digest = 0;
};

std::set<int64_t> DrawPoints(int64_t count, int64_t iterations, uint64_t seed) {
  // Stopping after the last iteration would compare nothing.
  const int64_t most = std::min(count, iterations - 1);
  const RandomKey key = RandomKey(seed).Mix("verify-resume");
  std::set<int64_t> points;
  for (uint64_t i = 0; static_cast<int64_t>(points.size()) < most; ++i) {
    points.insert(1 + static_cast<int64_t>(key.Below(i, static_cast<uint64_t>(iterations - 1))));
  }
  return points;
}

absl::StatusOr<Mark> MarkOf(Trainer& trainer) {
  ASSIGN_OR_RETURN(const uint64_t digest, DigestState(trainer.session().executor()));
  return Mark{trainer.last_loss(), digest};
}

// The first difference, or nothing.
std::string Compare(const Mark& whole, const Mark& resumed, int64_t iteration, int64_t point) {
  if (whole.loss == resumed.loss && whole.digest == resumed.digest) return "";
  return fmt::format(
      "resumed at {}, iteration {}: loss {} instead of {}; weights and optimizer state {}", point,
      iteration, resumed.loss, whole.loss, whole.digest == resumed.digest ? "are equal" : "differ");
}

}  // namespace

absl::StatusOr<VerifyResumeReport> VerifyResume(const JobSpec& job, const EngineTables& tables,
                                                const TrainerOptions& trainer_options,
                                                const VerifyResumeOptions& options) {
  std::error_code error;
  if (std::filesystem::exists(options.folder, error) &&
      !std::filesystem::is_empty(options.folder, error)) {
    return FailedPrecondition("{} is not empty; name another folder", options.folder);
  }
  JobSpec whole_job = job;
  whole_job.output_dir = options.folder + "/whole";
  whole_job.checkpoint = {
      .every_iterations = std::nullopt, .keep = options.points + 2, .resume = "none"};
  TrainerOptions with_store = trainer_options;
  ASSIGN_OR_RETURN(const auto whole_store,
                   CheckpointStore::Create({whole_job.output_dir, whole_job.checkpoint.keep}));
  with_store.store = whole_store.get();
  ASSIGN_OR_RETURN(auto whole, Trainer::Create(whole_job, tables, with_store));
  VerifyResumeReport report;
  report.iterations = std::min(options.iterations, whole->total_iterations());
  if (report.iterations < 2) {
    return InvalidArgument("a run of {} iteration(s) cannot be stopped in between",
                           report.iterations);
  }
  const std::set<int64_t> points = DrawPoints(options.points, report.iterations, options.seed);
  report.points.assign(points.begin(), points.end());
  std::vector<Mark> marks(1);
  while (whole->iteration() < report.iterations) {
    ASSIGN_OR_RETURN(const bool more, whole->Step());
    CHECK(more) << "the run ended at iteration " << whole->iteration();
    ASSIGN_OR_RETURN(marks.emplace_back(), MarkOf(*whole));
    if (points.contains(whole->iteration())) RETURN_IF_ERROR(whole->Save());
  }
  whole.reset();
  for (const int64_t point : points) {
    JobSpec resumed_job = whole_job;
    resumed_job.output_dir = fmt::format("{}/resumed_{}", options.folder, point);
    resumed_job.checkpoint.resume =
        CheckpointsFolder(whole_job.output_dir) + "/" + CheckpointName(point);
    ASSIGN_OR_RETURN(const auto store,
                     CheckpointStore::Create({resumed_job.output_dir, whole_job.checkpoint.keep}));
    with_store.store = store.get();
    ASSIGN_OR_RETURN(auto resumed, Trainer::Create(resumed_job, tables, with_store));
    while (resumed->iteration() < report.iterations) {
      ASSIGN_OR_RETURN(const bool more, resumed->Step());
      CHECK(more) << "the resumed run ended at iteration " << resumed->iteration();
      ASSIGN_OR_RETURN(const Mark mark, MarkOf(*resumed));
      const int64_t at = resumed->iteration();
      ++report.compared;
      report.difference = Compare(marks[static_cast<size_t>(at)], mark, at, point);
      if (!report.difference.empty()) return report;
    }
  }
  return report;
}

}  // namespace capstan
