#include "ops/scale/scale.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferScale(OpCall& call) {
  const TensorType &x = call.In(0), &factor = call.In(1);
  if (factor.ndim() != 0) return InvalidArgument("the factor must be a scalar");
  if (factor.dtype != x.dtype) return InvalidArgument("x and factor need the same element type");
  return InferLikeInput0(call);
}

absl::Status InferScaleFactorGrad(OpCall& call) {
  const TensorType &x = call.In(0), &dy = call.In(1);
  if (x.dtype != dy.dtype || x.shape != dy.shape) {
    return InvalidArgument("x and dy need the same shape and element type");
  }
  call.outputs = {{x.dtype, {}}};
  return absl::OkStatus();
}

void GradOfScale(GradContext& g) {
  if (g.needs(0)) g.Set(0, Scale(g.b(), g.dout(0), g.in(1)));
  if (g.needs(1)) g.Set(1, g.b().Add1(kScaleFactorGrad, {}, {g.in(0), g.dout(0)}));
}

Cost ScaleFactorGradCost(const OpCall& call) {
  return {2.0 * static_cast<double>(call.In(0).count()), ArgumentBytes(call)};
}

std::vector<Example> ScaleExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({67}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({3, 4}), FloatInput({4})}, .error = "a scalar"},
  };
}

std::vector<Example> ScaleFactorGradExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 3, 4, 5})}},
      {.attrs = none, .inputs = {FloatInput({}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({3, 4}), FloatInput({4, 3})}, .error = "same shape"},
  };
}

}  // namespace

constinit const OpDef kScale = {
    .name = "scale",
    .doc = "Product with a scalar: y = x * factor.",
    .inputs = {{"x"}, {"factor"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferScale,
    .grad = GradOfScale,
    .axes = {.text = "b*, . -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 0}}, .linear_in = 0b1, .layout = LayoutNeed::kFollow},
    .examples = ScaleExamples,
};

constinit const OpDef kScaleFactorGrad = {
    .name = "scale_factor_grad",
    .doc = "Gradient of scale's factor: dfactor = sum of x * dy.",
    .inputs = {{"x"}, {"dy"}},
    .outputs = {{"dfactor"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferScaleFactorGrad,
    .grad = kNoGrad,
    .axes = {.text = "b*, b* -> ."},
    .cost = ScaleFactorGradCost,
    .traits = {.linear_in = 0b10, .layout = LayoutNeed::kFollow},
    .examples = ScaleFactorGradExamples,
};

ValueId Scale(Builder& b, ValueId x, ValueId factor) { return b.Add1(kScale, {}, {x, factor}); }

std::vector<const OpDef*> ScaleRows() { return {&kScale, &kScaleFactorGrad}; }

}  // namespace capstan
