// `type: synthetic`: generated pictures. A sample is a pure function of (options, index).
//
// pattern `waves`: each class has its own plane waves, seen through noise, so that a model can
// learn it; training and evaluation sets share the classes when they share `seed`, and share no
// sample when their ranges [first_sample, first_sample + samples) do not meet. pattern `noise`:
// noise alone, to measure speed.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"
#include "engine/data/image_dataset.h"

namespace capstan {

enum class SyntheticPattern { kWaves, kNoise };
constexpr std::array<const char*, 2> EnumNamesOf(SyntheticPattern) { return {"waves", "noise"}; }

struct SyntheticOptions {
  int64_t classes = 10;
  std::vector<int64_t> shape = {3, 32, 32};
  int64_t samples = 1024;
  int64_t first_sample = 0;
  SyntheticPattern pattern = SyntheticPattern::kWaves;
  double noise = 0.5;
  int64_t seed = 0;

  static constexpr auto Fields() {
    return std::array{
        Field<&SyntheticOptions::classes>("classes", "number of classes", kAtLeastOne),
        Field<&SyntheticOptions::shape>("shape", "channels, height, width", kAtLeastOne),
        Field<&SyntheticOptions::samples>("samples", "number of samples", kAtLeastOne),
        Field<&SyntheticOptions::first_sample>("first_sample", "number of the first sample",
                                               kNonNegative),
        Field<&SyntheticOptions::pattern>("pattern", "what the pictures show"),
        Field<&SyntheticOptions::noise>("noise", "share of noise in `waves`",
                                        Bounds{.min = 0, .max = 1}),
        Field<&SyntheticOptions::seed>("seed", "of the patterns and the noise")};
  }
};

// The shape of the pictures; an error where `shape` does not give three sizes.
absl::StatusOr<ImageShape> SyntheticShape(const SyntheticOptions& options);

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenSynthetic(const SyntheticOptions& options,
                                                            int64_t model_classes);

}  // namespace capstan
