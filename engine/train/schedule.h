// Learning-rate schedules: the rate of an update as a pure function of the number of updates
// finished before it.
//
//   ASSIGN_OR_RETURN(Schedule s, Schedule::Create(lr_section, iterations_per_epoch, total));
//   s.Rate(0);      // of the first update
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"

namespace capstan {

// Far beyond any training; keeps a number of updates an int64.
inline constexpr Bounds kEpochs{.min = 0, .max = 1e9};

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

// values[i] until decay_epochs[i], then values[i + 1]; `base` is not used.
struct PiecewiseRate : RateOptions {
  std::vector<double> decay_epochs = {30, 60, 90};
  std::vector<double> values;
  double gamma = 0.1;
  static constexpr auto Fields() {
    return JoinFields(
        FieldsOf<PiecewiseRate>(),
        std::array{
            Field<&PiecewiseRate::decay_epochs>(
                "decay_epochs", "epochs at which the rate changes, from the start of training",
                Bounds{.min = 0, .max = kEpochs.max, .open_min = true}),
            Field<&PiecewiseRate::values>(
                "values",
                "the rates: one more than decay_epochs; empty: base, times gamma "
                "at each change",
                kNonNegative),
            Field<&PiecewiseRate::gamma>("gamma", "factor at each change without values",
                                         kPositive)});
  }
};

struct ScheduleRow {
  const char* name;
  const TypeInfo* options;
  const char* doc;
};

std::span<const ScheduleRow> ScheduleRows();

class Schedule {
 public:
  // Errors name the key. `total_iterations` is the length of training in updates.
  static absl::StatusOr<Schedule> Create(const Section& lr, int64_t iterations_per_epoch,
                                         int64_t total_iterations);

  double Rate(int64_t finished_updates) const;

 private:
  enum class Shape { kConstant, kCosine, kLinear, kPiecewise };

  double AfterWarmup(int64_t updates) const;

  Shape shape_ = Shape::kConstant;
  RateOptions common_;
  double end_ = 0;
  int64_t warmup_ = 0;  // updates
  int64_t total_ = 0;
  std::vector<int64_t> boundaries_;  // updates
  std::vector<double> values_;
};

}  // namespace capstan
