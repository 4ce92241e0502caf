#include "ops/relu/relu.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

void GradOfRelu(GradContext& g) { g.Set(0, g.b().Add1(kReluGrad, {}, {g.out(0), g.dout(0)})); }

std::vector<Example> ReluExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({2, 3, 4, 5}, Draw::kAwayFromZero)}},
      {.attrs = none, .inputs = {FloatInput({7}, Draw::kAwayFromZero)}},
  };
}

std::vector<Example> ReluGradExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none,
       .inputs = {FloatInput({2, 3, 4, 5}, Draw::kAwayFromZero), FloatInput({2, 3, 4, 5})}},
      {.attrs = none, .inputs = {FloatInput({7}), FloatInput({6})}, .error = "same shape"},
  };
}

absl::Status InferReluGrad(OpCall& call) {
  if (call.In(0).shape != call.In(1).shape) return InvalidArgument("y and dy need the same shape");
  return InferLikeInput0(call);
}

}  // namespace

constinit const OpDef kRelu = {
    .name = "relu",
    .doc = "Rectified linear unit: y = max(x, 0).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferLikeInput0,
    .grad = GradOfRelu,
    .axes = {.text = "b* -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 0}}, .layout = LayoutNeed::kFollow},
    .examples = ReluExamples,
};

constinit const OpDef kReluGrad = {
    .name = "relu_grad",
    .doc = "Gradient of relu from its result: dx = dy where y > 0, else 0.",
    .inputs = {{"y"}, {"dy"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferReluGrad,
    .grad = kNoGrad,
    .axes = {.text = "b*, b* -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 1}}, .linear_in = 0b10, .layout = LayoutNeed::kFollow},
    .examples = ReluGradExamples,
};

ValueId Relu(Builder& b, ValueId x) { return b.Add1(kRelu, {}, {x}); }

std::vector<const OpDef*> ReluRows() { return {&kRelu, &kReluGrad}; }

}  // namespace capstan
