// What a run knows besides its tensors: counters, the place in the data, the job. Stored as JSON
// (state.json of a checkpoint), so that it can be read without this program.
//
// Invariant: nothing here names a rank, and every number is stored so that it reads back to the
// same bits. A field is added with one line of Fields(); files without it give its default. Plain
// values; copy freely.
//
//   TrainingState state{.iteration = 1000, .epoch = 3, .seed = 42};
//   ASSIGN_OR_RETURN(std::string text, StateToJson(state));
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/reflect.h"

namespace capstan {

// The sampler's place (engine/data/sampler.h): `skipped` has one count a data-parallel rank.
struct SamplerPosition {
  int64_t epoch = 0;
  int64_t samples = 0;
  std::vector<int64_t> skipped;

  static constexpr auto Fields() {
    return std::array{
        Field<&SamplerPosition::epoch>("epoch", "whose order is being read", kNonNegative),
        Field<&SamplerPosition::samples>(
            "samples", "places of that order that whole global batches have taken", kNonNegative),
        Field<&SamplerPosition::skipped>(
            "skipped", "bad samples passed over in this epoch, by data-parallel rank",
            kNonNegative)};
  }
  friend bool operator==(const SamplerPosition&, const SamplerPosition&) = default;
};

// The dynamic loss scale of float16 training.
struct LossScaleState {
  double scale = 1;
  int64_t good_iterations = 0;     // in a row, since the scale last changed
  int64_t skipped_iterations = 0;  // in a row

  static constexpr auto Fields() {
    return std::array{Field<&LossScaleState::scale>("scale", "factor of the loss"),
                      Field<&LossScaleState::good_iterations>(
                          "good_iterations", "finite ones in a row since the scale changed"),
                      Field<&LossScaleState::skipped_iterations>("skipped_iterations",
                                                                 "not finite ones in a row")};
  }
  friend bool operator==(const LossScaleState&, const LossScaleState&) = default;
};

struct TrainingState {
  int64_t iteration = 0;
  int64_t epoch = 0;
  int64_t updates = 0;
  int64_t seed = 0;
  SamplerPosition sampler;
  std::optional<double> best_metric;
  std::optional<int64_t> best_iteration;
  bool evaluation_due = false;
  std::optional<LossScaleState> loss_scale;
  int64_t ema_updates = 0;
  std::vector<std::string> class_names;
  std::string kernel_plans;
  std::string job;

  static constexpr auto Fields() {
    return std::array{
        Field<&TrainingState::iteration>("iteration", "finished iterations", kNonNegative)
            .Required(),
        Field<&TrainingState::epoch>("epoch", "finished epochs", kNonNegative).Required(),
        Field<&TrainingState::updates>(
            "updates", "finished optimizer updates: what the schedule counts", kNonNegative),
        Field<&TrainingState::seed>("seed", "of every random draw").Required(),
        Field<&TrainingState::sampler>("sampler", "the next sample"),
        Field<&TrainingState::best_metric>("best_metric", "the best evaluation so far"),
        Field<&TrainingState::best_iteration>(
            "best_iteration", "when that was; equal to `iteration`: this checkpoint is the best"),
        Field<&TrainingState::evaluation_due>(
            "evaluation_due", "the evaluation after this iteration was stopped; resuming does it"),
        Field<&TrainingState::loss_scale>("loss_scale", "float16 only"),
        Field<&TrainingState::ema_updates>("ema_updates", "updates of the averaged weights"),
        Field<&TrainingState::class_names>("class_names", "by class id"),
        Field<&TrainingState::kernel_plans>("kernel_plans",
                                            "kernels chosen by timing, as the runtime prints them"),
        Field<&TrainingState::job>("job", "the job file, rendered")};
  }
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

// JSON text that ends with a line end. InvalidArgument where a text is not UTF-8.
absl::StatusOr<std::string> StateToJson(const TrainingState& state);

// DataLoss naming the key: bad JSON, a wrong type, a required key missing. Unknown keys are
// ignored.
absl::StatusOr<TrainingState> StateFromJson(std::string_view text);

}  // namespace capstan
