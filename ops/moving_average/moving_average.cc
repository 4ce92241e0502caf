#include "ops/moving_average/moving_average.h"

namespace capstan {
namespace {

absl::Status InferEma(OpCall& call) {
  const TensorType &a = call.In(0), &w = call.In(1);
  if (a.dtype != w.dtype || a.shape != w.shape) {
    return InvalidArgument("a and w need the same shape and element type");
  }
  const double decay = call.Attrs<EmaUpdateAttrs>().decay;
  if (!(decay >= 0 && decay <= 1)) return InvalidArgument("decay {} is not in [0, 1]", decay);
  return InferLikeInput0(call);
}

std::vector<Example> EmaExamples() {
  const auto attrs = [](double decay) { return AnyStruct::Of(EmaUpdateAttrs{decay}); };
  return {
      {.attrs = attrs(0.9), .inputs = {FloatInput({37}), FloatInput({37})}},
      {.attrs = attrs(0.25), .inputs = {FloatInput({64}), FloatInput({64})}},
      {.attrs = attrs(1), .inputs = {FloatInput({1}), FloatInput({1})}},
      {.attrs = attrs(0), .inputs = {FloatInput({20000}), FloatInput({20000})}},
      {.attrs = attrs(0.9), .inputs = {FloatInput({8}), FloatInput({7})}, .error = "same shape"},
      {.attrs = attrs(1.5), .inputs = {FloatInput({8}), FloatInput({8})}, .error = "not in [0, 1]"},
  };
}

}  // namespace

constinit const OpDef kEmaUpdate = {
    .name = "ema_update",
    .doc = "Exponential moving average: a' = decay * a + (1 - decay) * w.",
    .inputs = {{"a"}, {"w"}},
    .outputs = {{"a"}},
    .attrs = &TypeOf<EmaUpdateAttrs>(),
    .infer = InferEma,
    .grad = kNoGrad,
    .axes = {.text = "b*, b* -> b*"},
    .cost = ElementwiseCost<3>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}}},
    .examples = EmaExamples,
};

std::vector<const OpDef*> MovingAverageRows() { return {&kEmaUpdate}; }

}  // namespace capstan
