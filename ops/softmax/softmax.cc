#include "ops/softmax/softmax.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferSoftmax(OpCall& call) {
  const TensorType& x = call.In(0);
  if (x.ndim() < 1) return InvalidArgument("a scalar has no last dimension");
  if (x.count() == 0) return InvalidArgument("the input is empty");
  if (call.Has(1) && (call.In(1).shape != x.shape || call.In(1).dtype != x.dtype)) {
    return InvalidArgument("y and dy need the same shape and element type");
  }
  return InferLikeInput0(call);
}

void GradOfSoftmax(GradContext& g) {
  g.Set(0, g.b().Add1(kSoftmaxGrad, {}, {g.out(0), g.dout(0)}));
}

std::vector<Example> SoftmaxExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({4, 10})}},
      {.attrs = none, .inputs = {FloatInput({2, 3, 2, 5})}},
      {.attrs = none, .inputs = {FloatInput({3, 1})}},
      {.attrs = none,
       .inputs = {ValuesInput({DType::kF32, {2, 3}}, {1e4, -1e4, 9999, -1e4, -1e4, -1e4})},
       .differentiate = {0}},
      {.attrs = none, .inputs = {FloatInput({})}, .error = "no last dimension"},
  };
}

std::vector<Example> SoftmaxGradExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({4, 10}, Draw::kPositive), FloatInput({4, 10})}},
      {.attrs = none, .inputs = {FloatInput({2, 3, 2, 5}), FloatInput({2, 3, 2, 5})}},
      {.attrs = none, .inputs = {FloatInput({4, 2}), FloatInput({4, 3})}, .error = "same shape"},
  };
}

}  // namespace

constinit const OpDef kSoftmax = {
    .name = "softmax",
    .doc = "Softmax over the last dimension: y_k = exp(x_k) / sum_j exp(x_j).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferSoftmax,
    .grad = GradOfSoftmax,
    .axes = {.text = "b* k! -> b* k!"},
    .cost = ElementwiseCost<5>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}}},
    .examples = SoftmaxExamples,
};

constinit const OpDef kSoftmaxGrad = {
    .name = "softmax_grad",
    .doc = "Gradient of softmax from its result: dx_k = y_k * (dy_k - sum_j y_j * dy_j).",
    .inputs = {{"y"}, {"dy"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferSoftmax,
    .grad = kNoGrad,
    .axes = {.text = "b* k!, b* k! -> b* k!"},
    .cost = ElementwiseCost<4>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 1}}, .linear_in = 0b10},
    .examples = SoftmaxGradExamples,
};

ValueId Softmax(Builder& b, ValueId x) { return b.Add1(kSoftmax, {}, {x}); }

std::vector<const OpDef*> SoftmaxRows() { return {&kSoftmax, &kSoftmaxGrad}; }

}  // namespace capstan
