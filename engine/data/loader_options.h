// How samples are read, whatever the data set: `loader: {...}` and `bad_samples: {...}` of a job,
// which document these values.
#pragma once

#include <cstdint>
#include <optional>

namespace capstan {

enum class SampleCache { kNone, kRam, kDisk };

struct LoaderOptions {
  std::optional<int64_t> num_workers;  // 0: none but the caller of Next; not set: by the cores
  int64_t prefetch = 4;                // batches made ready ahead of their use, at least 1
};

struct BadSampleOptions {
  enum class Policy { kSkip, kFail };
  Policy policy = Policy::kSkip;
  double limit = 0.001;  // share of a rank's samples of an epoch
};

}  // namespace capstan
