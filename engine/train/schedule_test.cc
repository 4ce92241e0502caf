#include "engine/train/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/config/choice_table.h"

namespace capstan {
namespace {

using testing::HasSubstr;

constexpr double kPi = 3.14159265358979323846;

template <typename T>
absl::StatusOr<Schedule> Create(const char* name, const T& options, int64_t per_epoch,
                                int64_t total) {
  return Schedule::Create({name, AnyStruct::Of(options)}, per_epoch, total);
}

template <typename T>
Schedule Make(const char* name, const T& options, int64_t per_epoch, int64_t total) {
  const auto schedule = Create(name, options, per_epoch, total);
  CHECK_OK(schedule);
  return *schedule;
}

template <typename T>
T WithBase(double base) {
  T options;
  options.base = base;
  return options;
}

TEST(Schedule, Constant) {
  const Schedule s = Make("constant", WithBase<ConstantRate>(0.25), 10, 100);
  for (const int64_t u : {0, 1, 99, 100, 1000}) EXPECT_EQ(s.Rate(u), 0.25);
}

// Case LR-01: warm-up of 5 updates to 0.1, then a cosine to 0 at 20.
TEST(Schedule, CosineWithWarmup) {
  CosineRate options = WithBase<CosineRate>(0.1);
  options.warmup_iterations = 5;
  const Schedule s = Make("cosine", options, 4, 20);
  for (int64_t u = 0; u < 5; ++u) EXPECT_DOUBLE_EQ(s.Rate(u), 0.02 * static_cast<double>(u));
  EXPECT_DOUBLE_EQ(s.Rate(5), 0.1);
  EXPECT_NEAR(s.Rate(7), 0.0956772729, 1e-10);
  EXPECT_NEAR(s.Rate(8), 0.0904508497, 1e-10);
  EXPECT_NEAR(s.Rate(9), 0.0834565303, 1e-10);
  EXPECT_GT(s.Rate(19), 0);
  EXPECT_NEAR(s.Rate(20), 0, 1e-17);
  EXPECT_EQ(s.Rate(21), s.Rate(20));
}

TEST(Schedule, CosineAgainstItsClosedForm) {
  CosineRate options = WithBase<CosineRate>(0.8);
  options.end = 0.05;
  const Schedule s = Make("cosine", options, 10, 37);
  for (int64_t u = 0; u <= 37; ++u) {
    const double angle = kPi * static_cast<double>(u) / 37;
    EXPECT_NEAR(s.Rate(u), 0.05 + 0.75 * 0.5 * (1 + std::cos(angle)), 1e-15);
  }
}

TEST(Schedule, LinearAgainstItsClosedForm) {
  LinearRate options = WithBase<LinearRate>(1);
  options.end = 0.2;
  options.warmup_epochs = 0.5;
  options.warmup_start = 0.1;
  const Schedule s = Make("linear", options, 20, 110);
  EXPECT_DOUBLE_EQ(s.Rate(0), 0.1);
  EXPECT_DOUBLE_EQ(s.Rate(5), 0.55);
  for (int64_t u = 10; u <= 110; ++u) {
    EXPECT_NEAR(s.Rate(u), 1 - 0.8 * static_cast<double>(u - 10) / 100, 1e-15);
  }
  EXPECT_DOUBLE_EQ(s.Rate(200), 0.2);
}

TEST(Schedule, PiecewiseChangesAtTheEndOfEpochs) {
  PiecewiseRate options;
  options.decay_epochs = {30, 60, 90};
  options.values = {0.1, 0.01, 0.001, 0.0001};
  const Schedule s = Make("piecewise", options, 10, 1200);
  for (const auto& [update, rate] :
       std::initializer_list<std::pair<int64_t, double>>{{0, 0.1},
                                                         {299, 0.1},
                                                         {300, 0.01},
                                                         {599, 0.01},
                                                         {600, 0.001},
                                                         {899, 0.001},
                                                         {900, 0.0001},
                                                         {1199, 0.0001}}) {
    EXPECT_EQ(s.Rate(update), rate) << update;
  }
}

// Changes are counted from the start of training, not from the end of warm-up.
TEST(Schedule, MultiStepWithWarmup) {
  MultiStepRate options;
  options.base = 0.4;
  options.gamma = 0.5;
  options.decay_epochs = {2, 3.5};
  options.warmup_epochs = 1;
  const Schedule s = Make("multi_step", options, 10, 50);
  EXPECT_EQ(s.Rate(0), 0);
  EXPECT_DOUBLE_EQ(s.Rate(5), 0.2);
  EXPECT_EQ(s.Rate(10), 0.4);
  EXPECT_EQ(s.Rate(19), 0.4);
  EXPECT_EQ(s.Rate(20), 0.2);
  EXPECT_EQ(s.Rate(34), 0.2);
  EXPECT_EQ(s.Rate(35), 0.1);
}

// Steps are counted from the end of warm-up.
TEST(Schedule, Step) {
  StepRate options = WithBase<StepRate>(0.4);
  options.gamma = 0.5;
  options.step_epochs = 1.5;
  const Schedule plain = Make("step", options, 10, 100);
  EXPECT_EQ(plain.Rate(0), 0.4);
  EXPECT_EQ(plain.Rate(14), 0.4);
  EXPECT_EQ(plain.Rate(15), 0.2);
  EXPECT_EQ(plain.Rate(44), 0.1);
  EXPECT_EQ(plain.Rate(45), 0.05);
  options.warmup_iterations = 4;
  const Schedule warm = Make("step", options, 10, 100);
  EXPECT_EQ(warm.Rate(1), 0.1);
  EXPECT_EQ(warm.Rate(18), 0.4);
  EXPECT_EQ(warm.Rate(19), 0.2);
  // Never every zeroth update.
  options.step_epochs = 1e-9;
  EXPECT_EQ(Make("step", options, 10, 100).Rate(6), 0.1);
}

TEST(Schedule, Polynomial) {
  PolynomialRate options = WithBase<PolynomialRate>(1);
  options.end = 0.2;
  options.power = 2;
  options.warmup_iterations = 10;
  const Schedule s = Make("polynomial", options, 20, 110);
  EXPECT_DOUBLE_EQ(s.Rate(5), 0.5);
  EXPECT_DOUBLE_EQ(s.Rate(10), 1);
  EXPECT_DOUBLE_EQ(s.Rate(60), 0.4);   // 0.2 + 0.8 * 0.5^2
  EXPECT_DOUBLE_EQ(s.Rate(85), 0.25);  // 0.2 + 0.8 * 0.25^2
  EXPECT_DOUBLE_EQ(s.Rate(110), 0.2);
  EXPECT_DOUBLE_EQ(s.Rate(500), 0.2);
  options.power = 0.5;
  EXPECT_DOUBLE_EQ(Make("polynomial", options, 20, 110).Rate(85), 0.6);
}

TEST(Schedule, Exponential) {
  ExponentialRate options = WithBase<ExponentialRate>(0.8);
  options.gamma = 0.25;
  options.warmup_iterations = 2;
  const Schedule s = Make("exponential", options, 4, 40);
  EXPECT_EQ(s.Rate(1), 0.4);
  EXPECT_EQ(s.Rate(2), 0.8);
  EXPECT_DOUBLE_EQ(s.Rate(4), 0.4);
  EXPECT_DOUBLE_EQ(s.Rate(6), 0.2);
  EXPECT_DOUBLE_EQ(s.Rate(10), 0.05);
}

TEST(Schedule, PiecewiseErrors) {
  PiecewiseRate options;
  options.decay_epochs = {30, 60};
  options.values = {0.1, 0.01};
  EXPECT_THAT(MessageOf(Create("piecewise", options, 10, 100).status()),
              HasSubstr("values: 2 rates for 2 changes; wanted 3"));
  options.decay_epochs = {60, 30};
  EXPECT_THAT(MessageOf(Create("piecewise", options, 10, 100).status()),
              HasSubstr("decay_epochs: must ascend"));
}

// Case CFG-11.
TEST(Schedule, WarmupAsLongAsTraining) {
  CosineRate options = WithBase<CosineRate>(0.1);
  options.warmup_iterations = 5;
  const Schedule s = Make("cosine", options, 5, 5);
  for (int64_t u = 0; u < 5; ++u) EXPECT_DOUBLE_EQ(s.Rate(u), 0.02 * static_cast<double>(u));
  EXPECT_TRUE(std::isfinite(s.Rate(5)));
  options.warmup_iterations = 6;
  const std::string message = MessageOf(Create("cosine", options, 5, 5).status());
  EXPECT_THAT(message, HasSubstr("warm-up takes 6 updates, but training has 5"));
}

TEST(Schedule, WarmupIsGivenOnce) {
  ConstantRate options;
  options.warmup_iterations = 3;
  options.warmup_epochs = 1;
  EXPECT_THAT(MessageOf(Create("constant", options, 10, 100).status()),
              HasSubstr("either warmup_epochs or warmup_iterations"));
}

// The largest values that the bounds let pass.
TEST(Schedule, HugeNumbersAreErrorsNotOverflow) {
  ConstantRate options;
  options.warmup_epochs = kEpochs.max;
  EXPECT_FALSE(Create("constant", options, 1'000'000'000, 100).ok());
  MultiStepRate far = WithBase<MultiStepRate>(0.1);
  far.decay_epochs = {kEpochs.max};
  EXPECT_EQ(Make("multi_step", far, 1'000'000'000, 100).Rate(99), 0.1);
}

TEST(Schedule, TableIsAChoiceOfTheJobReader) {
  ChoiceTable choices;
  for (const ScheduleRow& row : ScheduleRows()) {
    choices["lr"].push_back({row.name, row.options, row.doc});
    const Section section{row.name, AnyStruct::Create(*row.options)};
    EXPECT_TRUE(Schedule::Create(section, 10, 100).ok()) << row.name;
  }
  CheckChoices(choices);
}

}  // namespace
}  // namespace capstan
