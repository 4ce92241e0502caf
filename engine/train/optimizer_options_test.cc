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
  EXPECT_EQ(rule.row, "sgd_update");
  EXPECT_EQ(rule.attrs, "{}");
  EXPECT_THAT(rule.slots, IsEmpty());
  EXPECT_FALSE(rule.takes_iteration);
  EXPECT_EQ(rule.weight_decay, 0.5);
  EXPECT_THAT(rule.no_decay, ElementsAre(Role::kBias, Role::kNorm));
}

TEST(OptimizerOptions, Momentum) {
  const auto plain = MakeUpdateRule(Spec("momentum", MomentumOptions{}));
  EXPECT_EQ(plain.row, "momentum_update");
  EXPECT_EQ(plain.attrs, "{momentum=0.9, nesterov=false}");
  EXPECT_THAT(plain.slots, ElementsAre("momentum"));
  EXPECT_EQ(plain.weight_decay, 0);
  const auto nesterov =
      MakeUpdateRule(Spec("momentum", MomentumOptions{.momentum = 0.5, .use_nesterov = true}));
  EXPECT_EQ(nesterov.attrs, "{momentum=0.5, nesterov=true}");
}

TEST(OptimizerOptions, AdamAndAdamwDifferInTheirDecay) {
  const auto adam = MakeUpdateRule(Spec("adam", AdamOptions{}));
  const auto adamw = MakeUpdateRule(Spec("adamw", AdamWOptions{}));
  EXPECT_EQ(adam.row, "adam_update");
  EXPECT_EQ(adamw.row, "adamw_update");
  EXPECT_EQ(adam.weight_decay, 0);
  EXPECT_EQ(adamw.weight_decay, 0.01);
  for (const auto& rule : {adam, adamw}) {
    EXPECT_EQ(rule.attrs, "{beta1=0.9, beta2=0.999, epsilon=1e-08}");
    EXPECT_THAT(rule.slots, ElementsAre("moment1", "moment2"));
    EXPECT_TRUE(rule.takes_iteration);
  }
}

TEST(OptimizerOptions, LambAndLarsAreLayerwise) {
  const auto lamb = MakeUpdateRule(Spec("lamb", LambOptions{}));
  const auto lars = MakeUpdateRule(Spec("lars", LarsOptions{.trust = 0.5, .always_adapt = true}));
  EXPECT_EQ(lamb.row, "lamb_update");
  EXPECT_EQ(lamb.attrs, "{beta1=0.9, beta2=0.999, epsilon=1e-06}");
  EXPECT_THAT(lamb.slots, ElementsAre("moment1", "moment2"));
  EXPECT_TRUE(lamb.takes_iteration);
  EXPECT_TRUE(lamb.layerwise);
  EXPECT_FALSE(lamb.adapt_all);
  EXPECT_EQ(lars.row, "lars_update");
  EXPECT_EQ(lars.attrs, "{momentum=0.9, trust=0.5, epsilon=0}");
  EXPECT_THAT(lars.slots, ElementsAre("momentum"));
  EXPECT_FALSE(lars.takes_iteration);
  EXPECT_TRUE(lars.layerwise);
  EXPECT_TRUE(lars.adapt_all);
}

TEST(OptimizerOptions, RolesWithoutDecay) {
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  spec.no_decay = {OptimizerSpec::Role::kEmbedding};
  EXPECT_THAT(MakeUpdateRule(spec).no_decay, ElementsAre(Role::kEmbedding));
  spec.no_decay = {};
  EXPECT_THAT(MakeUpdateRule(spec).no_decay, IsEmpty());
}

TEST(OptimizerOptions, Clipping) {
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  spec.grad_clip = GradClipSpec{.global_norm = 1.5};
  EXPECT_EQ(MakeUpdateRule(spec).clip_global_norm, 1.5);
  EXPECT_EQ(MakeUpdateRule(spec).clip_value, std::nullopt);
  spec.grad_clip = GradClipSpec{.norm = 2.5};
  EXPECT_EQ(MakeUpdateRule(spec).clip_norm, 2.5);
  EXPECT_EQ(MakeUpdateRule(spec).clip_global_norm, std::nullopt);
  spec.grad_clip = GradClipSpec{.value = 0.25};
  EXPECT_EQ(MakeUpdateRule(spec).clip_value, 0.25);
  EXPECT_EQ(MakeUpdateRule(spec).clip_global_norm, std::nullopt);
}

// Of three layers the top one keeps the rate.
TEST(OptimizerOptions, RatesOfLayers) {
  using Factors = std::vector<std::pair<std::string, double>>;
  const std::vector<ModelLayer> layers = {{{"conv1", "bn1"}}, {{"layer1"}}, {{"fc"}}};
  const auto factors = [&](const OptimizerSpec& spec) {
    UpdateRule rule = MakeUpdateRule(spec);
    const absl::Status status = SetLayerRates(spec, layers, &rule);
    EXPECT_TRUE(status.ok()) << status;
    return rule.lr_factors;
  };
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  EXPECT_THAT(factors(spec), IsEmpty());
  spec.layer_lr_decay = 0.5;
  EXPECT_EQ(factors(spec), (Factors{{"conv1", 0.25}, {"bn1", 0.25}, {"layer1", 0.5}, {"fc", 1}}));
  spec.layer_lr_decay.reset();
  spec.layer_lr_factors = {0.1, 0.3};
  EXPECT_EQ(factors(spec), (Factors{{"conv1", 0.1}, {"bn1", 0.1}, {"layer1", 0.3}}));
  spec.layer_lr_factors = {1, 1, 1};
  EXPECT_THAT(factors(spec), IsEmpty());
}

TEST(OptimizerOptions, RatesOfLayersThatCannotBe) {
  const std::vector<ModelLayer> layers = {{{"conv1"}}, {{"fc"}}};
  const auto error = [&](const OptimizerSpec& spec, const std::vector<ModelLayer>& of) {
    UpdateRule rule = MakeUpdateRule(spec);
    return MessageOf(SetLayerRates(spec, of, &rule));
  };
  OptimizerSpec spec = Spec("sgd", SgdOptions{});
  spec.layer_lr_factors = {0.1, 0.2, 0.3};
  EXPECT_THAT(error(spec, layers),
              HasSubstr("layer_lr_factors: 3 factors, but the model has 2 layers"));
  EXPECT_THAT(error(spec, {}), HasSubstr("this model has no list of layers"));
  spec.layer_lr_decay = 0.5;
  EXPECT_THAT(error(spec, layers), HasSubstr("exclude each other"));
  spec = Spec("lars", LarsOptions{});
  spec.layer_lr_decay = 0.5;
  EXPECT_THAT(error(spec, layers), HasSubstr("layer_lr_decay: lars gives every tensor a rate"));
}

TEST(OptimizerOptions, AttributesReadBackToTheSameBits) {
  const double momentum = 0.1 + 0.2;
  const auto rule = MakeUpdateRule(Spec("momentum", MomentumOptions{.momentum = momentum}));
  EXPECT_THAT(rule.attrs, HasSubstr("0.30000000000000004"));
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
