#include "ops/sgd/sgd.h"

#include "ops/sgd/update_row.h"

namespace capstan {
namespace {

absl::Status InferSgd(OpCall& call) { return InferUpdate(call, 0); }

std::vector<Example> SgdExamples() {
  const auto attrs = [](SgdUpdateAttrs a) { return AnyStruct::Of(a); };
  const ExampleInput lr = FloatInput({}, Draw::kPositive);
  return {
      {.attrs = attrs({}), .inputs = {FloatInput({37}), FloatInput({37}), lr}},
      {.attrs = attrs({.weight_decay = 0.01, .lr_factor = 0.5}),
       .inputs = {FloatInput({64}), FloatInput({64}), lr, FloatInput({}, Draw::kPositive)}},
      {.attrs = attrs({}), .inputs = {FloatInput({1}), FloatInput({1}), lr}},
      {.attrs = attrs({}),
       .inputs = {FloatInput({8}), FloatInput({7}), lr},
       .error = "g must be f"},
      {.attrs = attrs({}),
       .inputs = {FloatInput({2, 4}), FloatInput({2, 4}), lr},
       .error = "flat bucket"},
      {.attrs = attrs({}),
       .inputs = {FloatInput({8}), FloatInput({8}), FloatInput({1})},
       .error = "lr must be a scalar"},
  };
}

}  // namespace

constinit const OpDef kSgdUpdate = {
    .name = "sgd_update",
    .doc = "Gradient descent: w' = w - lr_factor * lr * (grad_scale * g + weight_decay * w).",
    .inputs = {{"w"}, {"g"}, {"lr"}, {.name = "grad_scale", .optional = true}},
    .outputs = {{"w"}},
    .attrs = &TypeOf<SgdUpdateAttrs>(),
    .infer = InferSgd,
    .grad = kNoGrad,
    .axes = {.fn = UpdateAxes},
    .cost = ElementwiseCost<5>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}}},
    .examples = SgdExamples,
};

std::vector<const OpDef*> SgdRows() { return {&kSgdUpdate}; }

}  // namespace capstan
