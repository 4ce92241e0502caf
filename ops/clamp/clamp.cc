#include "ops/clamp/clamp.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferClamp(OpCall& call) {
  const auto& attrs = call.Attrs<ClampAttrs>();
  // Written so that a NaN bound is refused.
  if (!(attrs.min <= attrs.max)) {
    return InvalidArgument("min {} is greater than max {}", attrs.min, attrs.max);
  }
  if (call.Has(1) &&
      (call.In(1).shape != call.In(0).shape || call.In(1).dtype != call.In(0).dtype)) {
    return InvalidArgument("x and dy need the same shape and element type");
  }
  return InferLikeInput0(call);
}

void GradOfClamp(GradContext& g) {
  g.Set(0, g.b().Add1(kClampGrad, g.attrs(), {g.in(0), g.dout(0)}));
}

// Bounds away from the values drawn by kAwayFromZero (0.2 to 1.2 in size): no kink is met.
constexpr ClampAttrs kExample = {.min = -0.1, .max = 0.1};

std::vector<Example> ClampExamples() {
  return {
      {.attrs = AnyStruct::Of(kExample), .inputs = {FloatInput({2, 3, 4, 5}, Draw::kAwayFromZero)}},
      {.attrs = AnyStruct::Of(ClampAttrs{.min = 0}),
       .inputs = {FloatInput({37}, Draw::kAwayFromZero)}},
      {.attrs = AnyStruct::Of(ClampAttrs{.min = -2, .max = 2}),
       .inputs = {FloatInput({}, Draw::kAwayFromZero)}},
      {.attrs = AnyStruct::Of(ClampAttrs{.min = 1, .max = 0}),
       .inputs = {FloatInput({3})},
       .error = "min 1 is greater than max 0"},
  };
}

std::vector<Example> ClampGradExamples() {
  return {
      {.attrs = AnyStruct::Of(ClampAttrs{.min = -0.5, .max = 0.5}),
       .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 3, 4, 5})}},
      {.attrs = AnyStruct::Of(ClampAttrs{.min = 0}),
       .inputs = {FloatInput({37}), FloatInput({37})}},
      {.attrs = AnyStruct::Of(kExample),
       .inputs = {FloatInput({3}), FloatInput({4})},
       .error = "same shape"},
  };
}

}  // namespace

constinit const OpDef kClamp = {
    .name = "clamp",
    .doc = "Limits every element: y = min(max(x, min), max).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<ClampAttrs>(),
    .infer = InferClamp,
    .grad = GradOfClamp,
    .axes = {.text = "b* -> b*"},
    .cost = ElementwiseCost<2>,
    .traits = {.in_place = {{0, 0}}, .layout = LayoutNeed::kFollow},
    .examples = ClampExamples,
};

constinit const OpDef kClampGrad = {
    .name = "clamp_grad",
    .doc = "Gradient of clamp: dx = dy where min <= x <= max, else 0.",
    .inputs = {{"x"}, {"dy"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<ClampAttrs>(),
    .infer = InferClamp,
    .grad = kNoGrad,
    .axes = {.text = "b*, b* -> b*"},
    .cost = ElementwiseCost<2>,
    .traits = {.in_place = {{0, 1}, {0, 0}}, .linear_in = 0b10, .layout = LayoutNeed::kFollow},
    .examples = ClampGradExamples,
};

ValueId Clamp(Builder& b, ValueId x, ClampAttrs attrs) {
  return b.Add1(kClamp, AnyStruct::Of(attrs), {x});
}

std::vector<const OpDef*> ClampRows() { return {&kClamp, &kClampGrad}; }

}  // namespace capstan
