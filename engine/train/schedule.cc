#include "engine/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/status.h"

namespace capstan {
namespace {

int64_t UpdatesIn(double epochs, int64_t iterations_per_epoch) {
  return std::llround(epochs * static_cast<double>(iterations_per_epoch));
}

}  // namespace

std::span<const ScheduleRow> ScheduleRows() {
  static constexpr ScheduleRow kRows[] = {
      {"constant", &TypeOf<ConstantRate>(), "the same rate throughout"},
      {"cosine", &TypeOf<CosineRate>(), "half a cosine from base to end"},
      {"linear", &TypeOf<LinearRate>(), "a straight line from base to end"},
      {"polynomial", &TypeOf<PolynomialRate>(), "a power of what is left, from base to end"},
      {"exponential", &TypeOf<ExponentialRate>(), "the same factor for every epoch"},
      {"step", &TypeOf<StepRate>(), "times a factor after every so many epochs"},
      {"multi_step", &TypeOf<MultiStepRate>(), "times a factor at chosen epochs"},
      {"piecewise", &TypeOf<PiecewiseRate>(), "given rates between chosen epochs"}};
  return kRows;
}

Schedule Schedule::Read(const Section& lr) {
  Schedule s;
  if (lr.name == "constant") {
    s.common_ = lr.options.As<ConstantRate>();
  } else if (lr.name == "cosine") {
    s.shape_ = Shape::kCosine;
    s.common_ = lr.options.As<CosineRate>();
    s.end_ = lr.options.As<CosineRate>().end;
  } else if (lr.name == "linear") {
    s.shape_ = Shape::kPolynomial;
    s.common_ = lr.options.As<LinearRate>();
    s.end_ = lr.options.As<LinearRate>().end;
  } else if (lr.name == "polynomial") {
    const auto& o = lr.options.As<PolynomialRate>();
    s.shape_ = Shape::kPolynomial;
    s.common_ = o;
    s.end_ = o.end;
    s.power_ = o.power;
  } else if (lr.name == "exponential") {
    const auto& o = lr.options.As<ExponentialRate>();
    s.shape_ = Shape::kExponential;
    s.common_ = o;
    s.gamma_ = o.gamma;
    s.interval_epochs_ = 1;
  } else if (lr.name == "step") {
    const auto& o = lr.options.As<StepRate>();
    s.shape_ = Shape::kStep;
    s.common_ = o;
    s.gamma_ = o.gamma;
    s.interval_epochs_ = o.step_epochs;
  } else if (lr.name == "multi_step") {
    const auto& o = lr.options.As<MultiStepRate>();
    s.shape_ = Shape::kPiecewise;
    s.common_ = o;
    s.decay_epochs_ = o.decay_epochs;
    s.values_ = {o.base};
    while (s.values_.size() <= s.decay_epochs_.size())
      s.values_.push_back(s.values_.back() * o.gamma);
  } else {
    CHECK(lr.name == "piecewise") << "the job reader lets only known schedules pass";
    const auto& o = lr.options.As<PiecewiseRate>();
    s.shape_ = Shape::kPiecewise;
    s.common_ = o;
    s.decay_epochs_ = o.decay_epochs;
    s.values_ = o.values;
  }
  return s;
}

std::vector<ScheduleFault> ScheduleFaults(const Section& lr, const TrainingLength& length) {
  const Schedule s = Schedule::Read(lr);
  std::vector<ScheduleFault> faults;
  if (!std::is_sorted(s.decay_epochs_.begin(), s.decay_epochs_.end())) {
    faults.push_back({"decay_epochs", "must ascend"});
  }
  if (const size_t changes = s.decay_epochs_.size();
      s.shape_ == Schedule::Shape::kPiecewise && s.values_.size() != changes + 1) {
    faults.push_back({"values", fmt::format("{} rates for {} changes; wanted {}", s.values_.size(),
                                            changes, changes + 1)});
  }
  const RateOptions& c = s.common_;
  if (c.warmup_epochs > 0 && c.warmup_iterations > 0) {
    faults.push_back({"warmup_iterations", "give either warmup_epochs or warmup_iterations"});
  }
  if (length.epochs.has_value() && c.warmup_epochs > static_cast<double>(*length.epochs)) {
    faults.push_back({"warmup_epochs", fmt::format("warm-up takes {} epochs, but training has {}; "
                                                   "shorten it",
                                                   c.warmup_epochs, *length.epochs)});
  }
  if (length.iterations.has_value() && c.warmup_iterations > *length.iterations) {
    faults.push_back(
        {"warmup_iterations", fmt::format("warm-up takes {} updates, but training has {}; "
                                          "shorten it",
                                          c.warmup_iterations, *length.iterations)});
  }
  return faults;
}

absl::StatusOr<Schedule> Schedule::Create(const Section& lr, int64_t iterations_per_epoch,
                                          int64_t total_iterations) {
  const std::vector<ScheduleFault> faults = ScheduleFaults(lr, {});
  if (!faults.empty()) return InvalidArgument("{}: {}", faults[0].key, faults[0].problem);
  Schedule s = Read(lr);
  s.interval_ = std::max<int64_t>(1, UpdatesIn(s.interval_epochs_, iterations_per_epoch));
  for (const double epoch : s.decay_epochs_) {
    s.boundaries_.push_back(UpdatesIn(epoch, iterations_per_epoch));
  }
  const RateOptions& c = s.common_;
  s.warmup_ = c.warmup_iterations > 0 ? c.warmup_iterations
                                      : UpdatesIn(c.warmup_epochs, iterations_per_epoch);
  s.total_ = total_iterations;
  if (s.warmup_ > total_iterations) {
    return InvalidArgument("warm-up takes {} updates, but training has {}; shorten {}", s.warmup_,
                           total_iterations,
                           c.warmup_iterations > 0 ? "warmup_iterations" : "warmup_epochs");
  }
  return s;
}

double Schedule::Rate(int64_t finished_updates) const {
  if (finished_updates >= warmup_) return AfterWarmup(finished_updates);
  // Up to the rate that the schedule has right after warm-up.
  const double target = AfterWarmup(warmup_);
  const double share = static_cast<double>(finished_updates) / static_cast<double>(warmup_);
  return common_.warmup_start + (target - common_.warmup_start) * share;
}

double Schedule::AfterWarmup(int64_t updates) const {
  const int64_t length = total_ - warmup_;
  const double progress =
      length > 0
          ? std::min(1.0, static_cast<double>(updates - warmup_) / static_cast<double>(length))
          : 0.0;
  switch (shape_) {
    case Shape::kConstant:
      return common_.base;
    case Shape::kCosine:
      return end_ + (common_.base - end_) * (1 + std::cos(std::numbers::pi * progress)) / 2;
    case Shape::kPolynomial:
      return end_ + (common_.base - end_) * std::pow(1 - progress, power_);
    case Shape::kExponential:
      return common_.base * std::pow(gamma_, static_cast<double>(updates - warmup_) /
                                                 static_cast<double>(interval_));
    case Shape::kStep:
      return common_.base * std::pow(gamma_, static_cast<double>((updates - warmup_) / interval_));
    case Shape::kPiecewise: {
      const auto i = std::upper_bound(boundaries_.begin(), boundaries_.end(), updates);
      return values_[static_cast<size_t>(i - boundaries_.begin())];
    }
  }
  return common_.base;
}

}  // namespace capstan
