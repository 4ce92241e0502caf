// verify-resume: proves on a user's own job that stopping and going on changes nothing.
//
// The job runs once without a break, saving at random iterations; from each of these checkpoints a
// fresh trainer goes on to the end. Every loss and all weights and optimizer state must agree bit
// for bit after every iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/config/job_spec.h"
#include "engine/train/trainer.h"

namespace capstan {

struct VerifyResumeOptions {
  std::string folder;       // for both runs' outputs; must be empty or absent
  int64_t points = 5;       // iterations to stop at
  int64_t iterations = 20;  // length of the run, if the job is longer
  uint64_t seed = 0;        // draws the points
};

struct VerifyResumeReport {
  int64_t iterations = 0;
  int64_t compared = 0;  // pairs of iterations
  std::vector<int64_t> points;
  std::string difference;  // empty: none
};

absl::StatusOr<VerifyResumeReport> VerifyResume(const JobSpec& job, const EngineTables& tables,
                                                const TrainerOptions& trainer,
                                                const VerifyResumeOptions& options);

}  // namespace capstan
