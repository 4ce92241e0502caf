// The optimizers that `optimizer: {name: ...}` may name: their options as keys of a job, and the
// rule that the optimizer pass builds the update program from.
#pragma once

#include <array>
#include <span>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"
#include "engine/config/job_spec.h"
#include "engine/passes/pass.h"
#include "engine/train/model_row.h"

namespace capstan {

inline constexpr Bounds kDecayRate{.min = 0, .max = 1};

struct SgdOptions {
  double weight_decay = 0;
  static constexpr auto Fields() {
    return std::array{Field<&SgdOptions::weight_decay>(
        "weight_decay", "factor of the weight that is added to its gradient (L2)", kNonNegative)};
  }
};

struct MomentumOptions {
  double momentum = 0.9;
  double weight_decay = 0;
  bool use_nesterov = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&MomentumOptions::momentum>("momentum", "share of the velocity that is kept",
                                          kDecayRate),
        Field<&MomentumOptions::weight_decay>(
            "weight_decay", "factor of the weight that is added to its gradient (L2)",
            kNonNegative),
        Field<&MomentumOptions::use_nesterov>("use_nesterov", "look ahead by one step")};
  }
};

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  static constexpr auto Fields() {
    return std::array{
        Field<&AdamOptions::beta1>("beta1", "share kept of the mean gradient", kDecayRate),
        Field<&AdamOptions::beta2>("beta2", "share kept of the mean squared gradient", kDecayRate),
        Field<&AdamOptions::epsilon>("epsilon", "added to the root of the latter", kPositive),
        Field<&AdamOptions::weight_decay>("weight_decay",
                                          "factor of the weight that is added to its gradient (L2)",
                                          kNonNegative)};
  }
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  static constexpr auto Fields() {
    return std::array{
        Field<&AdamWOptions::beta1>("beta1", "share kept of the mean gradient", kDecayRate),
        Field<&AdamWOptions::beta2>("beta2", "share kept of the mean squared gradient", kDecayRate),
        Field<&AdamWOptions::epsilon>("epsilon", "added to the root of the latter", kPositive),
        Field<&AdamWOptions::weight_decay>(
            "weight_decay", "share by which weights shrink in each update, times the rate",
            kNonNegative)};
  }
};

// Roles in `no_decay` have no rates of their own either, unless always_adapt is set.
struct LambOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  bool always_adapt = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&LambOptions::beta1>("beta1", "share kept of the mean gradient", kDecayRate),
        Field<&LambOptions::beta2>("beta2", "share kept of the mean squared gradient", kDecayRate),
        Field<&LambOptions::epsilon>("epsilon", "added to the root of the latter", kPositive),
        Field<&LambOptions::weight_decay>(
            "weight_decay", "factor of the weight that is added to its step", kNonNegative)
            .Also("lamb_weight_decay"),
        Field<&LambOptions::always_adapt>(
            "always_adapt", "tensors that no_decay names have rates of their own, too")};
  }
};

struct LarsOptions {
  double momentum = 0.9;
  double trust = 0.001;
  double epsilon = 0;
  double weight_decay = 0.0005;
  bool always_adapt = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&LarsOptions::momentum>("momentum", "share of the velocity that is kept", kDecayRate),
        Field<&LarsOptions::trust>("trust", "factor of the rate of every tensor", kPositive)
            .Also("lars_coeff"),
        Field<&LarsOptions::epsilon>("epsilon", "added to the norm of a gradient", kNonNegative),
        Field<&LarsOptions::weight_decay>(
            "weight_decay", "factor of the weight that is added to its gradient", kNonNegative)
            .Also("lars_weight_decay"),
        Field<&LarsOptions::always_adapt>(
            "always_adapt", "tensors that no_decay names have rates of their own, too")};
  }
};

struct OptimizerRow {
  const char* name;
  const TypeInfo* options;
  const char* doc;
  // The row, its attributes, slots and weight decay; the rest comes from the common keys.
  UpdateRule (*rule)(const AnyStruct& options);
};

std::span<const OptimizerRow> OptimizerRows();

// The rule of a job's optimizer section, but for what the model's layers decide.
UpdateRule MakeUpdateRule(const OptimizerSpec& spec);

// Rates of their own for the layers of a model: layer_lr_decay, layer_lr_factors. Errors name the
// key.
absl::Status SetLayerRates(const OptimizerSpec& spec, const std::vector<ModelLayer>& layers,
                           UpdateRule* rule);

}  // namespace capstan
