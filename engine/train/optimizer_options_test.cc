#include "engine/train/optimizer_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/status.h"
#include "engine/config/choice_table.h"

namespace capstan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename T>
OptimizerSpec Spec(const char* name, const T& options) {
  OptimizerSpec spec;
  spec.choice = {name, AnyStruct::Of(options)};
  return spec;
}

TEST(OptimizerOptions, SgdHasNoSlots) {
  const auto rule = MakeUpdateRule(Spec("sgd", SgdOptions{.weight_decay = 0.5}));
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->row, "sgd_update");
  EXPECT_EQ(rule->attrs, "{}");
  EXPECT_THAT(rule->slots, IsEmpty());
  EXPECT_FALSE(rule->takes_iteration);
  EXPECT_EQ(rule->weight_decay, 0.5);
  EXPECT_THAT(rule->no_decay, ElementsAre(Role::kBias, Role::kNorm));
}

TEST(OptimizerOptions, Momentum) {
  const auto plain = MakeUpdateRule(Spec("momentum", MomentumOptions{}));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->row, "momentum_update");
  EXPECT_EQ(plain->attrs, "{momentum=0.9, nesterov=false}");
  EXPECT_THAT(plain->slots, ElementsAre("momentum"));
  EXPECT_EQ(plain->weight_decay, 0);
  const auto nesterov =
      MakeUpdateRule(Spec("momentum", MomentumOptions{.momentum = 0.5, .use_nesterov = true}));
  ASSERT_TRUE(nesterov.ok()) << nesterov.status();
  EXPECT_EQ(nesterov->attrs, "{momentum=0.5, nesterov=true}");
}

TEST(OptimizerOptions, AdamAndAdamwDifferInTheirDecay) {
  const auto adam = MakeUpdateRule(Spec("adam", AdamOptions{}));
  const auto adamw = MakeUpdateRule(Spec("adamw", AdamWOptions{}));
  ASSERT_TRUE(adam.ok() && adamw.ok());
  EXPECT_EQ(adam->row, "adam_update");
  EXPECT_EQ(adamw->row, "adamw_update");
  EXPECT_EQ(adam->weight_decay, 0);
  EXPECT_EQ(adamw->weight_decay, 0.01);
  for (const auto& rule : {adam, adamw}) {
    EXPECT_EQ(rule->attrs, "{beta1=0.9, beta2=0.999, epsilon=1e-08}");
    EXPECT_THAT(rule->slots, ElementsAre("moment1", "moment2"));
    EXPECT_TRUE(rule->takes_iteration);
  }
}

TEST(OptimizerOptions, LambAndLarsAreLayerwise) {
  const auto lamb = MakeUpdateRule(Spec("lamb", LambOptions{}));
  const auto lars = MakeUpdateRule(Spec("lars", LarsOptions{.trust = 0.5, .always_adapt = true}));
  ASSERT_TRUE(lamb.ok() && lars.ok());
  EXPECT_EQ(lamb->row, "lamb_update");
  EXPECT_EQ(lamb->attrs, "{beta1=0.9, beta2=0.999, epsilon=1e-06}");
  EXPECT_THAT(lamb->slots, ElementsAre("moment1", "moment2"));
  EXPECT_TRUE(lamb->takes_iteration);
  EXPECT_TRUE(lamb->layerwise);
  EXPECT_FALSE(lamb->adapt_all);
  EXPECT_EQ(lars->row, "lars_update");
  EXPECT_EQ(lars->attrs, "{momentum=0.9, trust=0.5, epsilon=0}");
  EXPECT_THAT(lars->slots, ElementsAre("momentum"));
  EXPECT_FALSE(lars->takes_iteration);
  EXPECT_TRUE(lars->layerwise);
  EXPECT_TRUE(lars->adapt_all);
}

TEST(OptimizerOptions, RolesWithoutDecay) {
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  spec.no_decay = {OptimizerSpec::Role::kEmbedding};
  EXPECT_THAT(MakeUpdateRule(spec)->no_decay, ElementsAre(Role::kEmbedding));
  spec.no_decay = {};
  EXPECT_THAT(MakeUpdateRule(spec)->no_decay, IsEmpty());
}

TEST(OptimizerOptions, Clipping) {
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  spec.grad_clip = GradClipSpec{.global_norm = 1.5};
  EXPECT_EQ(MakeUpdateRule(spec)->clip_global_norm, 1.5);
  EXPECT_EQ(MakeUpdateRule(spec)->clip_value, std::nullopt);
  spec.grad_clip = GradClipSpec{.value = 0.25};
  EXPECT_EQ(MakeUpdateRule(spec)->clip_value, 0.25);
  EXPECT_EQ(MakeUpdateRule(spec)->clip_global_norm, std::nullopt);
}

TEST(OptimizerOptions, WhatIsNotSupportedYetIsNamed) {
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  spec.grad_clip = GradClipSpec{.norm = 2};
  EXPECT_THAT(MessageOf(MakeUpdateRule(spec).status()),
              HasSubstr("optimizer.grad_clip.norm: not supported yet; use global_norm"));
  spec.grad_clip = GradClipSpec{.global_norm = 1, .value = 2};
  EXPECT_THAT(MessageOf(MakeUpdateRule(spec).status()), HasSubstr("exclude each other"));
  spec.grad_clip.reset();
  spec.layer_lr_decay = 0.8;
  EXPECT_THAT(MessageOf(MakeUpdateRule(spec).status()),
              HasSubstr("optimizer.layer_lr_decay: not supported yet"));
}

TEST(OptimizerOptions, AttributesReadBackToTheSameBits) {
  const double momentum = 0.1 + 0.2;
  const auto rule = MakeUpdateRule(Spec("momentum", MomentumOptions{.momentum = momentum}));
  EXPECT_THAT(rule->attrs, HasSubstr("0.30000000000000004"));
}

// The keys as a job writes them.
TEST(OptimizerOptions, TableIsAChoiceOfTheJobReader) {
  ChoiceTable choices;
  for (const OptimizerRow& row : OptimizerRows()) {
    choices["optimizer"].push_back({row.name, row.options, row.doc});
    EXPECT_FALSE(row.rule(AnyStruct::Create(*row.options)).row.empty());
  }
  CheckChoices(choices);
  EXPECT_THAT(ChoiceNames(choices, "optimizer"),
              ElementsAre("sgd", "momentum", "adam", "adamw", "lamb", "lars"));
}

}  // namespace
}  // namespace capstan
