#include "ops/add/add.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferAdd(OpCall& call) {
  const TensorType &a = call.In(0), &b = call.In(1);
  if (a.dtype != b.dtype || a.shape != b.shape) {
    return InvalidArgument("a and b need the same shape and element type; nothing is broadcast");
  }
  return InferLikeInput0(call);
}

void GradOfAdd(GradContext& g) {
  g.Set(0, g.dout(0));
  g.Set(1, g.dout(0));
}

std::vector<Example> AddExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 3, 4, 5})}},
      {.attrs = none, .inputs = {FloatInput({}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({67}), FloatInput({67})}},
      {.attrs = none, .inputs = {FloatInput({3, 4}), FloatInput({4})}, .error = "same shape"},
  };
}

}  // namespace

constinit const OpDef kAdd = {
    .name = "add",
    .doc = "Elementwise sum: y = a + b.",
    .inputs = {{"a"}, {"b"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferAdd,
    .grad = GradOfAdd,
    .axes = {.text = "b*, b* -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 0}, {0, 1}}, .linear_in = 0b11, .layout = LayoutNeed::kFollow},
    .examples = AddExamples,
};

ValueId Add(Builder& b, ValueId x, ValueId y) { return b.Add1(kAdd, {}, {x, y}); }

std::vector<const OpDef*> AddRows() { return {&kAdd}; }

}  // namespace capstan
