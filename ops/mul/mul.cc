#include "ops/mul/mul.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferMul(OpCall& call) {
  const TensorType &a = call.In(0), &b = call.In(1);
  if (a.dtype != b.dtype || a.shape != b.shape) {
    return InvalidArgument("a and b need the same shape and element type");
  }
  return InferLikeInput0(call);
}

void GradOfMul(GradContext& g) {
  if (g.needs(0)) g.Set(0, Mul(g.b(), g.dout(0), g.in(1)));
  if (g.needs(1)) g.Set(1, Mul(g.b(), g.dout(0), g.in(0)));
}

std::vector<Example> MulExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 3, 4, 5})}},
      {.attrs = none, .inputs = {FloatInput({}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({67}), FloatInput({67})}},
      {.attrs = none, .inputs = {FloatInput({3, 4}), FloatInput({4})}, .error = "same shape"},
  };
}

}  // namespace

constinit const OpDef kMul = {
    .name = "mul",
    .doc = "Elementwise product: y = a * b.",
    .inputs = {{"a"}, {"b"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferMul,
    .grad = GradOfMul,
    .axes = {.text = "b*, b* -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 0}, {0, 1}}, .linear_in = 0b1, .layout = LayoutNeed::kFollow},
    .examples = MulExamples,
};

ValueId Mul(Builder& b, ValueId x, ValueId y) { return b.Add1(kMul, {}, {x, y}); }

std::vector<const OpDef*> MulRows() { return {&kMul}; }

}  // namespace capstan
