// Plans: what shares memory, what does not, and that computing agrees with reference kernels.
#include "engine/plan/plan.h"

#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/plan/lower.h"
#include "tests/compiler/programs.h"

namespace capstan {
namespace {

const PlannedProgram& Only(const Plan& plan) { return plan.programs[0]; }

TEST(Plan, ElementwiseRowsOverwriteWhatNobodyNeeds) {
  const Plan plan = PlanOf(ParseModule({{ProgramKind::kEvaluate, R"(graph evaluate {
  %0 = data x : f32[1000]
  %1 = relu(%0){} : f32[1000]
  %2 = relu(%1){} : f32[1000]
  %3 = relu(%2){} : f32[1000]
  output y = %3
}
)"}}));
  // The input is the caller's; all the rest fits in one place.
  EXPECT_EQ(Only(plan).scratch_bytes, 4032);
  EXPECT_EQ(Only(plan).buffers[1].offset, Only(plan).buffers[3].offset);
}

TEST(Plan, WhatIsReadLaterIsNotOverwritten) {
  const Module module = ParseModule({{ProgramKind::kEvaluate, R"(graph evaluate {
  %0 = data x : f32[100]
  %1 = relu(%0){} : f32[100]
  %2 = relu(%1){} : f32[100]
  %3 = add(%2, %1){} : f32[100]
  output y = %3
  output early = %1
}
)"}});
  const Results r = RunAll(module);
  const std::vector<double>&y = r.at("evaluate/y"), &early = r.at("evaluate/early");
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 2 * early[i]);
}

TEST(Plan, ViewsCostNothing) {
  const Plan plan = PlanOf(ParseModule({{ProgramKind::kEvaluate, R"(graph evaluate {
  %0 = data x : f32[4,6]
  %1 = relu(%0){} : f32[4,6]
  %2 = reshape(%1){shape=[24]} : f32[24]
  %3 = relu(%2){} : f32[24]
  output y = %3
}
)"}}));
  EXPECT_EQ(Only(plan).steps.size(), 2u);
  EXPECT_EQ(Only(plan).scratch_bytes, 128);
}

TEST(Plan, UpdatesAreComputedInTheState) {
  const Module module = ParseModule({{ProgramKind::kUpdate, R"(graph update {
  %0 = data lr : f32[]
  %1 = state w : f32[64] init={}
  %2 = state g : f32[64] init={}
  %3 = sgd_update(%1, %2, %0){} : f32[64]
  update %1 = %3
}
)"}});
  const Plan plan = PlanOf(module);
  EXPECT_EQ(Only(plan).steps.size(), 1u);
  EXPECT_EQ(Only(plan).scratch_bytes, 0);
  EXPECT_EQ(Only(plan).buffers[3].arena, Arena::kState);
}

TEST(Plan, AStateThatIsReadAfterwardsIsCopiedAtTheEnd) {
  const Module module = ParseModule({{ProgramKind::kUpdate, R"(graph update {
  %0 = state w : f32[8] init={}
  %1 = relu(%0){} : f32[8]
  %2 = add(%1, %0){} : f32[8]
  update %0 = %1
  output sum = %2
}
)"}});
  const Plan plan = PlanOf(module);
  ASSERT_EQ(Only(plan).steps.size(), 3u);
  EXPECT_STREQ(Only(plan).steps[2].kernel->op, "copy");
  const Results r = RunAll(module);
  const std::vector<double>&w = r.at("w"), &sum = r.at("update/sum");
  for (size_t i = 0; i < w.size(); ++i) {
    // w is the new value max(old, 0); the sum was made of new and old.
    EXPECT_TRUE(w[i] == 0 ? sum[i] <= 0 : sum[i] == 2 * w[i]);
  }
}

TEST(Plan, AMissingKernelListsWhatThereIs) {
  const absl::StatusOr<Plan> plan =
      BuildPlan(ParseModule({{ProgramKind::kEvaluate,
                              "graph g {\n  %0 = data x : f16[8]\n  %1 = relu(%0){} : f16[8] @act\n"
                              "  output y = %1\n}\n"}}),
                TestKernels(), {});
  ASSERT_FALSE(plan.ok());
  const std::string message = MessageOf(plan.status());
  EXPECT_NE(message.find("relu/reference (cpu): does not take f16"), std::string::npos) << message;
  EXPECT_NE(message.find("while planning 'act'"), std::string::npos) << message;
}

TEST(Plan, OpaqueBytesAreReadByWhoWroteThem) {
  const Module module = ParseModule({{ProgramKind::kEvaluate, R"(graph evaluate {
  %0 = data x : f32[2,8,6,6]{channels_last}
  %1, %2 = max_pool(%0){} : f32[2,8,3,3]{channels_last}, opaque[576]
  %3 = max_pool_grad(%1, %2){input_size=[6, 6]} : f32[2,8,6,6]{channels_last}
  output dx = %3
}
)"}});
  const Plan plan = PlanOf(module);
  EXPECT_STREQ(Only(plan).steps[0].kernel->impl, Only(plan).steps[1].kernel->impl);
  ExpectNear(RunAll(module, "reference"), RunAll(module), 1e-6);
}

TEST(Plan, TextNamesEveryStepAndBuffer) {
  const Plan plan =
      PlanOf(ParseModule({{ProgramKind::kEvaluate,
                           "graph g {\n  %0 = data x : f32[8]\n  %1 = relu(%0){} : f32[8] @act\n"
                           "  output y = %1\n}\n"}}));
  const std::string text = PrintPlan(plan);
  EXPECT_NE(text.find("b1 = relu/fast(b0){} @act"), std::string::npos) << text;
  EXPECT_NE(text.find("b1 : scratch+0 f32[8]"), std::string::npos) << text;
}

}  // namespace
}  // namespace capstan
