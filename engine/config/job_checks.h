// Rules between keys of a job, beyond what each key allows by itself. All are safe from any thread.
//
//   ASSIGN_OR_RETURN(Degrees d, ResolveDegrees(job, world));   // -1 filled in, product checked
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/config/diagnostics.h"
#include "engine/config/job_spec.h"

namespace capstan {

// What one process can decide: batch size against micro-batches, one way of clipping, at most one
// derived degree, and so on. LoadJob calls this.
void CheckJob(const JobSpec& job, Diagnostics* diagnostics);

// That the job has the parts a command needs. Training: dataset.train, loss, optimizer, and epochs
// or max_iterations. Evaluation: dataset.eval.
absl::Status CheckCanTrain(const JobSpec& job);
absl::Status CheckCanEvaluate(const JobSpec& job);

// Parallel degrees, all at least 1. Mesh order, outer to inner: dp, pp, sharding, mp.
struct Degrees {
  int64_t dp = 1;
  int64_t pp = 1;
  int64_t sharding = 1;
  int64_t mp = 1;

  int64_t product() const { return dp * pp * sharding * mp; }
  friend bool operator==(const Degrees&, const Degrees&) = default;
};

// The degrees of hybrid_configs for `world` processes; a degree of -1 becomes what is left. An
// error shows the product and the number of processes. `hybrid_configs: auto` is the planner's to
// resolve and CHECKs here.
absl::StatusOr<Degrees> ResolveDegrees(const JobSpec& job, int64_t world);

}  // namespace capstan
