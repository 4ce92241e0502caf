#include "engine/train/optimizer_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/status.h"

namespace capstan {
namespace {

UpdateRule SgdRule(const AnyStruct& any) {
  return {.row = "sgd_update", .attrs = "{}", .weight_decay = any.As<SgdOptions>().weight_decay};
}

UpdateRule MomentumRule(const AnyStruct& any) {
  const auto& o = any.As<MomentumOptions>();
  return {.row = "momentum_update",
          .attrs = fmt::format("{{momentum={}, nesterov={}}}", o.momentum, o.use_nesterov),
          .slots = {"momentum"},
          .weight_decay = o.weight_decay};
}

template <typename Options>
UpdateRule AdamRule(const char* row, const Options& o) {
  return {.row = row,
          .attrs = fmt::format("{{beta1={}, beta2={}, epsilon={}}}", o.beta1, o.beta2, o.epsilon),
          .slots = {"moment1", "moment2"},
          .takes_iteration = true,
          .weight_decay = o.weight_decay};
}

UpdateRule LambRule(const AnyStruct& any) {
  const auto& o = any.As<LambOptions>();
  return {.row = "lamb_update",
          .attrs = fmt::format("{{beta1={}, beta2={}, epsilon={}}}", o.beta1, o.beta2, o.epsilon),
          .slots = {"moment1", "moment2"},
          .takes_iteration = true,
          .weight_decay = o.weight_decay,
          .layerwise = true,
          .adapt_all = o.always_adapt};
}

UpdateRule LarsRule(const AnyStruct& any) {
  const auto& o = any.As<LarsOptions>();
  return {
      .row = "lars_update",
      .attrs = fmt::format("{{momentum={}, trust={}, epsilon={}}}", o.momentum, o.trust, o.epsilon),
      .slots = {"momentum"},
      .weight_decay = o.weight_decay,
      .layerwise = true,
      .adapt_all = o.always_adapt};
}

Role ToRole(OptimizerSpec::Role role) {
  switch (role) {
    case OptimizerSpec::Role::kBias:
      return Role::kBias;
    case OptimizerSpec::Role::kNorm:
      return Role::kNorm;
    case OptimizerSpec::Role::kEmbedding:
      return Role::kEmbedding;
  }
  return Role::kWeight;
}

}  // namespace

std::span<const OptimizerRow> OptimizerRows() {
  static constexpr OptimizerRow kRows[] = {
      {"sgd", &TypeOf<SgdOptions>(), "plain stochastic gradient descent", SgdRule},
      {"momentum", &TypeOf<MomentumOptions>(), "gradient descent with momentum", MomentumRule},
      {"adam", &TypeOf<AdamOptions>(), "Adam, weight decay as L2",
       [](const AnyStruct& o) { return AdamRule("adam_update", o.As<AdamOptions>()); }},
      {"adamw", &TypeOf<AdamWOptions>(), "Adam with decoupled weight decay",
       [](const AnyStruct& o) { return AdamRule("adamw_update", o.As<AdamWOptions>()); }},
      {"lamb", &TypeOf<LambOptions>(), "Adam with a rate of its own for each tensor", LambRule},
      {"lars", &TypeOf<LarsOptions>(), "momentum with a rate of its own for each tensor", LarsRule},
  };
  return kRows;
}

UpdateRule MakeUpdateRule(const OptimizerSpec& spec) {
  const auto rows = OptimizerRows();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const OptimizerRow& r) { return spec.choice.name == r.name; });
  CHECK(row != rows.end()) << "the job reader lets only known optimizers pass";
  UpdateRule rule = row->rule(spec.choice.options);
  for (const OptimizerSpec::Role role : spec.no_decay) rule.no_decay.push_back(ToRole(role));
  if (spec.grad_clip.has_value()) {
    rule.clip_global_norm = spec.grad_clip->global_norm;
    rule.clip_norm = spec.grad_clip->norm;
    rule.clip_value = spec.grad_clip->value;
  }
  return rule;
}

absl::Status SetLayerRates(const OptimizerSpec& spec, const std::vector<ModelLayer>& layers,
                           UpdateRule* rule) {
  std::vector<double> factors = spec.layer_lr_factors;
  const char* key = "layer_lr_factors";
  if (spec.layer_lr_decay.has_value()) {
    key = "layer_lr_decay";
    if (!factors.empty()) {
      return InvalidArgument("layer_lr_decay and layer_lr_factors exclude each other");
    }
    double factor = 1;
    for (size_t i = 0; i < layers.size(); ++i, factor *= *spec.layer_lr_decay) {
      factors.insert(factors.begin(), factor);
    }
  }
  const bool all_one = std::all_of(factors.begin(), factors.end(), [](double f) { return f == 1; });
  if (all_one && spec.layer_lr_decay.value_or(1) == 1) return absl::OkStatus();
  if (layers.empty()) return InvalidArgument("{}: this model has no list of layers", key);
  if (factors.size() > layers.size()) {
    return InvalidArgument("{}: {} factors, but the model has {} layers", key, factors.size(),
                           layers.size());
  }
  if (rule->layerwise) {
    return InvalidArgument("{}: {} gives every tensor a rate of its own; leave one of them out",
                           key, spec.choice.name);
  }
  for (size_t i = 0; i < factors.size(); ++i) {
    for (const std::string& name : layers[i].names) rule->lr_factors.emplace_back(name, factors[i]);
  }
  return absl::OkStatus();
}

}  // namespace capstan
