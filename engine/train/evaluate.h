// Evaluation: every sample of a data set exactly once, at any batch size.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/loader.h"
#include "engine/train/session.h"

namespace capstan {

struct EvaluationResult {
  std::vector<std::pair<std::string, double>> metrics;  // "top1", "top5", "loss"
  int64_t samples = 0;
  std::vector<BadSample> bad;  // left out, because they could not be read

  // NotFound lists the metrics there are.
  absl::StatusOr<double> Metric(const std::string& name) const;
};

// Reads one epoch of an evaluation loader. A batch that bad samples made smaller is filled with
// samples that do not count. Cancelled once `stop` is set.
absl::StatusOr<EvaluationResult> EvaluateAll(Session& session, Loader& loader, int64_t ignore_index,
                                             const std::atomic<bool>* stop = nullptr);

}  // namespace capstan
