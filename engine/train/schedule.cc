#include "engine/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/status.h"

namespace capstan {
namespace {

absl::Status CheckPiecewise(const PiecewiseRate& o) {
  if (!std::is_sorted(o.decay_epochs.begin(), o.decay_epochs.end())) {
    return InvalidArgument("decay_epochs: must ascend");
  }
  if (!o.values.empty() && o.values.size() != o.decay_epochs.size() + 1) {
    return InvalidArgument("values: {} rates for {} changes; wanted {}", o.values.size(),
                           o.decay_epochs.size(), o.decay_epochs.size() + 1);
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const ScheduleRow> ScheduleRows() {
  static constexpr ScheduleRow kRows[] = {
      {"constant", &TypeOf<ConstantRate>(), "the same rate throughout"},
      {"cosine", &TypeOf<CosineRate>(), "half a cosine from base to end"},
      {"linear", &TypeOf<LinearRate>(), "a straight line from base to end"},
      {"piecewise", &TypeOf<PiecewiseRate>(), "constant between changes"}};
  return kRows;
}

absl::StatusOr<Schedule> Schedule::Create(const Section& lr, int64_t iterations_per_epoch,
                                          int64_t total_iterations) {
  Schedule s;
  if (lr.name == "constant") {
    s.common_ = lr.options.As<ConstantRate>();
  } else if (lr.name == "cosine") {
    s.shape_ = Shape::kCosine;
    s.common_ = lr.options.As<CosineRate>();
    s.end_ = lr.options.As<CosineRate>().end;
  } else if (lr.name == "linear") {
    s.shape_ = Shape::kLinear;
    s.common_ = lr.options.As<LinearRate>();
    s.end_ = lr.options.As<LinearRate>().end;
  } else {
    CHECK(lr.name == "piecewise") << "the job reader lets only known schedules pass";
    const auto& o = lr.options.As<PiecewiseRate>();
    RETURN_IF_ERROR(CheckPiecewise(o));
    s.shape_ = Shape::kPiecewise;
    s.common_ = o;
    s.values_ = o.values;
    for (const double epoch : o.decay_epochs) {
      s.boundaries_.push_back(std::llround(epoch * static_cast<double>(iterations_per_epoch)));
    }
    for (double rate = o.base; s.values_.size() <= s.boundaries_.size(); rate *= o.gamma) {
      s.values_.push_back(rate);
    }
  }
  const RateOptions& c = s.common_;
  if (c.warmup_epochs > 0 && c.warmup_iterations > 0) {
    return InvalidArgument("give either warmup_epochs or warmup_iterations");
  }
  s.warmup_ = c.warmup_iterations > 0
                  ? c.warmup_iterations
                  : std::llround(c.warmup_epochs * static_cast<double>(iterations_per_epoch));
  s.total_ = total_iterations;
  if (s.warmup_ > total_iterations) {
    return InvalidArgument("warm-up takes {} updates, but training has {}; shorten warmup_epochs",
                           s.warmup_, total_iterations);
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
    case Shape::kLinear:
      return common_.base + (end_ - common_.base) * progress;
    case Shape::kPiecewise: {
      const auto i = std::upper_bound(boundaries_.begin(), boundaries_.end(), updates);
      return values_[static_cast<size_t>(i - boundaries_.begin())];
    }
  }
  return common_.base;
}

}  // namespace capstan
