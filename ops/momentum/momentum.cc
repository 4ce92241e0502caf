#include "ops/momentum/momentum.h"

#include "ops/sgd/update_row.h"

namespace capstan {
namespace {

absl::Status InferMomentum(OpCall& call) { return InferUpdate(call, 1); }

std::vector<Example> MomentumExamples() {
  const auto attrs = [](MomentumUpdateAttrs a) { return AnyStruct::Of(a); };
  const auto bucket = [](int64_t count) { return FloatInput({count}); };
  const ExampleInput scalar = FloatInput({}, Draw::kPositive);
  return {
      {.attrs = attrs({}), .inputs = {bucket(37), bucket(37), bucket(37), scalar}},
      {.attrs = attrs({.momentum = 0.8, .weight_decay = 0.01, .nesterov = true, .lr_factor = 0.5}),
       .inputs = {bucket(64), bucket(64), bucket(64), scalar, scalar}},
      {.attrs = attrs({}), .inputs = {bucket(1), bucket(1), bucket(1), scalar}},
      {.attrs = attrs({}),
       .inputs = {bucket(8), bucket(8), bucket(7), scalar},
       .error = "v must be f"},
  };
}

}  // namespace

constinit const OpDef kMomentumUpdate = {
    .name = "momentum_update",
    .doc =
        "Gradient descent with momentum: g' = grad_scale * g + weight_decay * w, "
        "v' = momentum * v + g', w' = w - lr_factor * lr * v' (Nesterov: g' + momentum * v' "
        "in the place of v').",
    .inputs = {{"w"}, {"g"}, {"v"}, {"lr"}, {.name = "grad_scale", .optional = true}},
    .outputs = {{"w"}, {"v"}},
    .attrs = &TypeOf<MomentumUpdateAttrs>(),
    .infer = InferMomentum,
    .grad = kNoGrad,
    .axes = {.fn = UpdateAxes},
    .cost = ElementwiseCost<9>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}, {1, 2}}},
    .examples = MomentumExamples,
};

std::vector<const OpDef*> MomentumRows() { return {&kMomentumUpdate}; }

}  // namespace capstan
