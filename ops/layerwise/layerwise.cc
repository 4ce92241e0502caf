#include "ops/layerwise/layerwise.h"

#include "ops/sgd/update_row.h"

namespace capstan {
namespace {

absl::Status InferLamb(OpCall& call) {
  const auto& attrs = call.Attrs<LambUpdateAttrs>();
  RETURN_IF_ERROR(InferMomentsUpdate(call, attrs.beta1, attrs.beta2));
  return CheckSegments(attrs.segment_ends, call.In(0).count());
}

absl::Status InferLars(OpCall& call) {
  RETURN_IF_ERROR(InferUpdate(call, 1));
  return CheckSegments(call.Attrs<LarsUpdateAttrs>().segment_ends, call.In(0).count());
}

std::vector<Example> LambExamples() {
  const auto attrs = [](LambUpdateAttrs a) { return AnyStruct::Of(a); };
  const auto inputs = MomentsUpdateInputs;
  std::vector<ExampleInput> clipped = inputs(64, 5), narrow = inputs(8, 0);
  clipped.push_back(FloatInput({}, Draw::kPositive));
  narrow[5] = IndexInput({}, 1, DType::kI32);
  return {
      {.attrs = attrs({.segment_ends = {5, 37}}), .inputs = inputs(37, 0)},
      {.attrs = attrs(
           {.segment_ends = {16, 17, 64}, .beta1 = 0.8, .epsilon = 1e-3, .weight_decay = 0.01}),
       .inputs = clipped},
      {.attrs = attrs({.segment_ends = {1}, .weight_decay = 0.1, .adapt = false}),
       .inputs = inputs(1, 1000)},
      {.attrs = attrs({.segment_ends = {5000, 9000}}), .inputs = inputs(9000, 3)},
      {.attrs = attrs({.segment_ends = {5, 7}}),
       .inputs = inputs(8, 0),
       .error = "segment_ends end at 7, the bucket has 8 elements"},
      {.attrs = attrs({.segment_ends = {5, 5, 8}}),
       .inputs = inputs(8, 0),
       .error = "segment_ends must ascend: 5 after 5"},
      {.attrs = attrs({.segment_ends = {8}}),
       .inputs = narrow,
       .error = "iteration must be i64, not i32"},
      {.attrs = attrs({.segment_ends = {8}, .beta2 = 1}),
       .inputs = inputs(8, 0),
       .error = "must be in [0, 1)"},
  };
}

std::vector<Example> LarsExamples() {
  const auto attrs = [](LarsUpdateAttrs a) { return AnyStruct::Of(a); };
  const auto inputs = [](int64_t count) {
    const ExampleInput bucket = FloatInput({count});
    return std::vector<ExampleInput>{bucket, bucket, bucket, FloatInput({}, Draw::kPositive)};
  };
  std::vector<ExampleInput> clipped = inputs(64);
  clipped.push_back(FloatInput({}, Draw::kPositive));
  return {
      {.attrs = attrs({.segment_ends = {5, 37}}), .inputs = inputs(37)},
      {.attrs = attrs({.segment_ends = {16, 17, 64},
                       .momentum = 0.8,
                       .trust = 0.5,
                       .epsilon = 1e-3,
                       .weight_decay = 0.01}),
       .inputs = clipped},
      {.attrs = attrs({.segment_ends = {1}, .weight_decay = 0.1, .adapt = false}),
       .inputs = inputs(1)},
      {.attrs = attrs({.segment_ends = {5000, 9000}, .trust = 1}), .inputs = inputs(9000)},
      {.attrs = attrs({}), .inputs = inputs(8), .error = "segment_ends end at 0"},
  };
}

// Norms are those of whole tensors.
std::string WholeAxes(const OpCall& call) {
  std::string rule;
  for (const char c : UpdateAxes(call)) {
    rule += c;
    if (c == 's') rule += '!';
  }
  return rule;
}

}  // namespace

constinit const OpDef kLambUpdate = {
    .name = "lamb_update",
    .doc =
        "LAMB: g' = grad_scale * g, m' = beta1 * m + (1 - beta1) * g', v' = beta2 * v + "
        "(1 - beta2) * g'^2, u = m' / (1 - beta1^t) / (sqrt(v' / (1 - beta2^t)) + epsilon) + "
        "weight_decay * w, w' = w - lr * |w| / |u| * u, t = iteration + 1, norms of each segment.",
    .inputs = {{"w"},
               {"g"},
               {"m"},
               {"v"},
               {"lr"},
               {"iteration", DTypeClass::kInteger},
               {.name = "grad_scale", .optional = true}},
    .outputs = {{"w"}, {"m"}, {"v"}},
    .attrs = &TypeOf<LambUpdateAttrs>(),
    .infer = InferLamb,
    .grad = kNoGrad,
    .axes = {.fn = WholeAxes},
    .cost = ElementwiseCost<30>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}, {1, 2}, {2, 3}}},
    .examples = LambExamples,
};

constinit const OpDef kLarsUpdate = {
    .name = "lars_update",
    .doc =
        "LARS: g' = grad_scale * g, v' = momentum * v + lr * trust * |w| / (|g'| + weight_decay * "
        "|w| + epsilon) * (g' + weight_decay * w), w' = w - v', norms of each segment.",
    .inputs = {{"w"}, {"g"}, {"v"}, {"lr"}, {.name = "grad_scale", .optional = true}},
    .outputs = {{"w"}, {"v"}},
    .attrs = &TypeOf<LarsUpdateAttrs>(),
    .infer = InferLars,
    .grad = kNoGrad,
    .axes = {.fn = WholeAxes},
    .cost = ElementwiseCost<12>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}, {1, 2}}},
    .examples = LarsExamples,
};

std::vector<const OpDef*> LayerwiseRows() { return {&kLambUpdate, &kLarsUpdate}; }

}  // namespace capstan
