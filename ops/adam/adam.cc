#include "ops/adam/adam.h"

#include "ops/sgd/update_row.h"

namespace capstan {
namespace {

absl::Status InferAdam(OpCall& call) {
  const auto& attrs = call.Attrs<AdamUpdateAttrs>();
  return InferMomentsUpdate(call, attrs.beta1, attrs.beta2);
}

std::vector<Example> AdamExamples() {
  const auto attrs = [](AdamUpdateAttrs a) { return AnyStruct::Of(a); };
  const auto inputs = MomentsUpdateInputs;
  std::vector<ExampleInput> clipped = inputs(64, 5), uneven = inputs(8, 0), real = inputs(8, 0);
  clipped.push_back(FloatInput({}, Draw::kPositive));
  uneven[3] = FloatInput({9});
  real[5] = IndexInput({}, 1, DType::kI32);
  return {
      {.attrs = attrs({}), .inputs = inputs(37, 0)},
      {.attrs = attrs({.beta1 = 0.8, .epsilon = 1e-6, .weight_decay = 0.01, .lr_factor = 0.5}),
       .inputs = clipped},
      {.attrs = attrs({}), .inputs = inputs(1, 1000)},
      {.attrs = attrs({}), .inputs = uneven, .error = "v must be f"},
      {.attrs = attrs({}), .inputs = real, .error = "iteration must be i64, not i32"},
      {.attrs = attrs({.beta2 = 1}), .inputs = inputs(8, 0), .error = "must be in [0, 1)"},
  };
}

}  // namespace

constinit const OpDef kAdamUpdate = {
    .name = "adam_update",
    .doc =
        "Adam with coupled decay: g' = grad_scale * g + weight_decay * w, m' = beta1 * m + "
        "(1 - beta1) * g', v' = beta2 * v + (1 - beta2) * g'^2, w' = w - lr_factor * lr / "
        "(1 - beta1^t) * m' / (sqrt(v' / (1 - beta2^t)) + epsilon), t = iteration + 1.",
    .inputs = {{"w"},
               {"g"},
               {"m"},
               {"v"},
               {"lr"},
               {"iteration", DTypeClass::kInteger},
               {.name = "grad_scale", .optional = true}},
    .outputs = {{"w"}, {"m"}, {"v"}},
    .attrs = &TypeOf<AdamUpdateAttrs>(),
    .infer = InferAdam,
    .grad = kNoGrad,
    .axes = {.fn = UpdateAxes},
    .cost = ElementwiseCost<18>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}, {1, 2}, {2, 3}}},
    .examples = AdamExamples,
};

constinit const OpDef kAdamwUpdate = {
    .name = "adamw_update",
    .doc =
        "Adam with decoupled decay: w is multiplied by 1 - lr_factor * lr * weight_decay, then "
        "follows adam_update without decay.",
    .inputs = {{"w"},
               {"g"},
               {"m"},
               {"v"},
               {"lr"},
               {"iteration", DTypeClass::kInteger},
               {.name = "grad_scale", .optional = true}},
    .outputs = {{"w"}, {"m"}, {"v"}},
    .attrs = &TypeOf<AdamUpdateAttrs>(),
    .infer = InferAdam,
    .grad = kNoGrad,
    .axes = {.fn = UpdateAxes},
    .cost = ElementwiseCost<18>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}, {1, 2}, {2, 3}}},
    .examples = AdamExamples,
};

std::vector<const OpDef*> AdamRows() { return {&kAdamUpdate, &kAdamwUpdate}; }

}  // namespace capstan
