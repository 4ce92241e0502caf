#include "engine/checkpoint/training_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/status.h"

namespace capstan {
namespace {

TEST(TrainingState, ReadsBackToTheSameBits) {
  TrainingState state{.iteration = INT64_MAX,
                      .epoch = 3,
                      .updates = 999,
                      .seed = -5,
                      .sampler = {.epoch = 3, .samples = 512, .skipped = {0, 2}},
                      .best_metric = 0.1 + 0.2,
                      .best_iteration = 900,
                      .loss_scale = LossScaleState{.scale = 65536, .good_iterations = 1},
                      .ema_updates = 7,
                      .class_names = {"0 tench", "简单", "\"\n\t\x01"},
                      .kernel_plans = "conv1: 3",
                      .job = "version: 1\r\nname: x\n"};
  for (const double metric : {5e-324, 1.7976931348623157e308, -0.0, 1.0, HUGE_VAL, -HUGE_VAL}) {
    state.best_metric = metric;
    auto text = StateToJson(state);
    ASSERT_TRUE(text.ok());
    auto back = StateFromJson(*text);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, state);
    EXPECT_EQ(std::signbit(*back->best_metric), std::signbit(metric));
  }
  state.best_metric = std::nan("");
  EXPECT_TRUE(std::isnan(*StateFromJson(*StateToJson(state))->best_metric));
  EXPECT_EQ(*StateFromJson(*StateToJson(TrainingState{})), TrainingState{});
}

TEST(TrainingState, ErrorsNameTheKey) {
  const auto error = [](const char* text) { return MessageOf(StateFromJson(text).status()); };
  EXPECT_EQ(error("{"), "it is not valid JSON");
  EXPECT_EQ(error("[]"), "it is not a JSON map");
  EXPECT_EQ(error("{}"), "key iteration is missing");
  const std::string rest = R"("epoch": 0, "seed": 0})";
  EXPECT_EQ(error((R"({"iteration": "1", )" + rest).c_str()),
            "key iteration: expected an integer of 64 bits");
  EXPECT_EQ(error((R"({"iteration": 1e3, )" + rest).c_str()),
            "key iteration: expected an integer of 64 bits");
  EXPECT_EQ(error((R"({"iteration": 18446744073709551615, )" + rest).c_str()),
            "key iteration: expected an integer of 64 bits");
  EXPECT_EQ(error((R"({"iteration": 1, "sampler": {"samples": []}, )" + rest).c_str()),
            "key sampler.samples: expected an integer of 64 bits");
  EXPECT_EQ(error((R"({"iteration": 1, "of_a_later_program": [], )" + rest).c_str()), "");
  EXPECT_FALSE(StateToJson({.job = "\xff"}).ok());
}

}  // namespace
}  // namespace capstan
