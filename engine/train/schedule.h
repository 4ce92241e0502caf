// Learning-rate schedules: the rate of an update as a pure function of the number of updates
// finished before it. Warm-up comes first; then smooth schedules run from its end to the end of
// training. Epochs that a schedule names (decay_epochs) count from the start of training.
//
//   ASSIGN_OR_RETURN(Schedule s, Schedule::Create(lr_section, iterations_per_epoch, total));
//   s.Rate(0);      // of the first update
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"

namespace capstan {

// Far beyond any training; keeps a number of updates an int64.
inline constexpr Bounds kEpochs{.min = 0, .max = 1e9};
inline constexpr Bounds kSomeEpochs{.min = 0, .max = kEpochs.max, .open_min = true};

// The keys that every schedule has.
struct RateOptions {
  double base = 0.1;
  double warmup_epochs = 0;
  int64_t warmup_iterations = 0;
  double warmup_start = 0;

  template <typename Owner>
  static constexpr auto FieldsOf() {
    return std::array{
        Field<&RateOptions::base, Owner>("base", "the rate after warm-up", kNonNegative)
            .Also("learning_rate"),
        Field<&RateOptions::warmup_epochs, Owner>(
            "warmup_epochs", "epochs over which the rate rises linearly", kEpochs)
            .Also("warmup_epoch"),
        Field<&RateOptions::warmup_iterations, Owner>(
            "warmup_iterations", "the same in updates; give one of the two", kNonNegative),
        Field<&RateOptions::warmup_start, Owner>("warmup_start", "the rate of the first update",
                                                 kNonNegative)
            .Also("warmup_start_lr")};
  }
};

struct ConstantRate : RateOptions {
  static constexpr auto Fields() { return FieldsOf<ConstantRate>(); }
};

// end + (base - end) * (1 + cos(pi * progress)) / 2, progress from 0 after warm-up to 1.
struct CosineRate : RateOptions {
  double end = 0;
  static constexpr auto Fields() {
    return JoinFields(FieldsOf<CosineRate>(),
                      std::array{Field<&CosineRate::end>("end", "the last rate", kNonNegative)});
  }
};

// base + (end - base) * progress.
struct LinearRate : RateOptions {
  double end = 0;
  static constexpr auto Fields() {
    return JoinFields(FieldsOf<LinearRate>(),
                      std::array{Field<&LinearRate::end>("end", "the last rate", kNonNegative)});
  }
};

// end + (base - end) * (1 - progress)^power.
struct PolynomialRate : RateOptions {
  double end = 0;
  double power = 2;
  static constexpr auto Fields() {
    return JoinFields(FieldsOf<PolynomialRate>(),
                      std::array{Field<&PolynomialRate::end>("end", "the last rate", kNonNegative),
                                 Field<&PolynomialRate::power>(
                                     "power", "of the share of training that is left", kPositive)});
  }
};

// base * gamma^(epochs after warm-up), with every update.
struct ExponentialRate : RateOptions {
  double gamma = 0.95;
  static constexpr auto Fields() {
    return JoinFields(
        FieldsOf<ExponentialRate>(),
        std::array{Field<&ExponentialRate::gamma>(
            "gamma", "factor over one epoch; the rate falls with every update", kPositive)});
  }
};

// base * gamma^floor(epochs after warm-up / step_epochs).
struct StepRate : RateOptions {
  double step_epochs = 30;
  double gamma = 0.1;
  static constexpr auto Fields() {
    return JoinFields(
        FieldsOf<StepRate>(),
        std::array{Field<&StepRate::step_epochs>(
                       "step_epochs", "epochs between two changes, after warm-up", kSomeEpochs)
                       .Also("step_size"),
                   Field<&StepRate::gamma>("gamma", "factor at each change", kPositive)});
  }
};

// base, times gamma at each of decay_epochs.
struct MultiStepRate : RateOptions {
  std::vector<double> decay_epochs = {30, 60, 90};
  double gamma = 0.1;
  static constexpr auto Fields() {
    return JoinFields(
        FieldsOf<MultiStepRate>(),
        std::array{Field<&MultiStepRate::decay_epochs>(
                       "decay_epochs",
                       "epochs at which the rate changes, from the start of training", kSomeEpochs)
                       .Also("milestones"),
                   Field<&MultiStepRate::gamma>("gamma", "factor at each change", kPositive)});
  }
};

// values[i] until decay_epochs[i], then values[i + 1]; `base` is not used.
struct PiecewiseRate : RateOptions {
  std::vector<double> decay_epochs = {30, 60, 90};
  std::vector<double> values = {0.1, 0.01, 0.001, 0.0001};
  static constexpr auto Fields() {
    return JoinFields(
        FieldsOf<PiecewiseRate>(),
        std::array{Field<&PiecewiseRate::decay_epochs>(
                       "decay_epochs",
                       "epochs at which the rate changes, from the start of training", kSomeEpochs),
                   Field<&PiecewiseRate::values>("values", "the rates: one more than decay_epochs",
                                                 kNonNegative)});
  }
};

struct ScheduleRow {
  const char* name;
  const TypeInfo* options;
  const char* doc;
};

std::span<const ScheduleRow> ScheduleRows();

// A key of `lr` and what is wrong with it.
struct ScheduleFault {
  std::string key;
  std::string problem;
};

// How long a job trains, where it says so.
struct TrainingLength {
  std::optional<int64_t> epochs;
  std::optional<int64_t> iterations;
};

// What is wrong with a schedule whatever the data are.
std::vector<ScheduleFault> ScheduleFaults(const Section& lr, const TrainingLength& length);

class Schedule {
 public:
  // Errors name the key. `total_iterations` is the length of training in updates.
  static absl::StatusOr<Schedule> Create(const Section& lr, int64_t iterations_per_epoch,
                                         int64_t total_iterations);

  double Rate(int64_t finished_updates) const;

 private:
  friend std::vector<ScheduleFault> ScheduleFaults(const Section& lr, const TrainingLength& length);

  enum class Shape { kConstant, kCosine, kPolynomial, kExponential, kStep, kPiecewise };

  // The options as they are; durations are still epochs.
  static Schedule Read(const Section& lr);
  double AfterWarmup(int64_t updates) const;

  Shape shape_ = Shape::kConstant;
  RateOptions common_;
  double end_ = 0;
  double power_ = 1;
  double gamma_ = 1;
  double interval_epochs_ = 0;  // over which a rate falls by gamma_
  int64_t interval_ = 1;        // the same in updates
  int64_t warmup_ = 0;          // updates
  int64_t total_ = 0;
  std::vector<double> decay_epochs_;
  std::vector<int64_t> boundaries_;  // the same in updates
  std::vector<double> values_;       // one more than those
};

}  // namespace capstan
