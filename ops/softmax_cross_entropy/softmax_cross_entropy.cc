#include "ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status CheckTargets(const OpCall& call, const TensorType& logits, const TensorType& labels) {
  const auto& attrs = call.Attrs<SoftmaxCrossEntropyAttrs>();
  if (!(attrs.label_smoothing >= 0 && attrs.label_smoothing <= 1)) {
    return InvalidArgument("label_smoothing {} is not between 0 and 1", attrs.label_smoothing);
  }
  if (logits.ndim() != 2 || logits.count() == 0) {
    return InvalidArgument("logits must be [samples, classes] and not empty");
  }
  if (IsInteger(labels.dtype) && labels.shape != Shape{logits.shape[0]}) {
    return InvalidArgument("{} samples need integer labels of shape [{}]", logits.shape[0],
                           logits.shape[0]);
  }
  if (IsFloat(labels.dtype) && (labels.shape != logits.shape || labels.dtype != logits.dtype)) {
    return InvalidArgument("target probabilities need the shape and element type of the logits");
  }
  if (!IsInteger(labels.dtype) && !IsFloat(labels.dtype)) {
    return InvalidArgument("labels are class numbers or probabilities, not {}",
                           NameOf(labels.dtype));
  }
  return absl::OkStatus();
}

absl::Status InferLoss(OpCall& call) {
  const TensorType& logits = call.In(0);
  RETURN_IF_ERROR(CheckTargets(call, logits, call.In(1)));
  call.outputs = {{logits.dtype, {logits.shape[0]}}};
  return absl::OkStatus();
}

absl::Status InferGrad(OpCall& call) {
  const TensorType &dloss = call.In(0), &logits = call.In(1);
  RETURN_IF_ERROR(CheckTargets(call, logits, call.In(2)));
  if (dloss.shape != Shape{logits.shape[0]} || dloss.dtype != logits.dtype) {
    return InvalidArgument("{} samples need a dloss of shape [{}] and the logits' element type",
                           logits.shape[0], logits.shape[0]);
  }
  call.outputs = {{logits.dtype, logits.shape}};
  return absl::OkStatus();
}

void GradOfLoss(GradContext& g) {
  if (!g.needs(0)) return;
  g.Set(0, g.b().Add1(kSoftmaxCrossEntropyGrad, g.attrs(), {g.dout(0), g.in(0), g.in(1)}));
}

std::string LossAxes(const OpCall& call) {
  return IsFloat(call.In(1).dtype) ? "n k!, n k! -> n" : "n k!, n -> n";
}

std::string GradAxes(const OpCall& call) {
  return IsFloat(call.In(2).dtype) ? "n, n k!, n k! -> n k!" : "n, n k!, n -> n k!";
}

template <int kLogits>
Cost LossCost(const OpCall& call) {
  return {5.0 * static_cast<double>(call.In(kLogits).count()), ArgumentBytes(call)};
}

std::vector<Example> LossExamples() {
  const auto attrs = [](SoftmaxCrossEntropyAttrs a) { return AnyStruct::Of(a); };
  const ExampleInput two_ignored = ValuesInput({DType::kI64, {4}}, {0, 2, 1, 2});
  return {
      {.attrs = attrs({}), .inputs = {FloatInput({5, 10}), IndexInput({5}, 10)}},
      {.attrs = attrs({.label_smoothing = 0.1, .ignore_index = 2}),
       .inputs = {FloatInput({4, 3}), two_ignored}},
      {.attrs = attrs({.label_smoothing = 0.2}),
       .inputs = {FloatInput({4, 6}), FloatInput({4, 6}, Draw::kPositive)},
       .differentiate = {0}},
      {.attrs = attrs({}), .inputs = {FloatInput({3, 1}), IndexInput({3}, 1, DType::kI32)}},
      {.attrs = attrs({}),
       .inputs = {FloatInput({5, 10}), IndexInput({4}, 10)},
       .error = "5 samples need integer labels of shape [5]"},
      {.attrs = attrs({.label_smoothing = 2}),
       .inputs = {FloatInput({5, 10}), IndexInput({5}, 10)},
       .error = "label_smoothing 2 is not between 0 and 1"},
  };
}

std::vector<Example> GradExamples() {
  const auto attrs = [](SoftmaxCrossEntropyAttrs a) { return AnyStruct::Of(a); };
  const ExampleInput two_ignored = ValuesInput({DType::kI64, {4}}, {0, 2, 1, 2});
  return {
      {.attrs = attrs({}), .inputs = {FloatInput({5}), FloatInput({5, 10}), IndexInput({5}, 10)}},
      {.attrs = attrs({.label_smoothing = 0.1, .ignore_index = 2}),
       .inputs = {FloatInput({4}), FloatInput({4, 3}), two_ignored}},
      {.attrs = attrs({.label_smoothing = 0.2}),
       .inputs = {FloatInput({4}), FloatInput({4, 6}), FloatInput({4, 6}, Draw::kPositive)}},
      {.attrs = attrs({}),
       .inputs = {FloatInput({4}), FloatInput({5, 10}), IndexInput({5}, 10)},
       .error = "dloss of shape [5]"},
  };
}

}  // namespace

constinit const OpDef kSoftmaxCrossEntropy = {
    .name = "softmax_cross_entropy",
    .doc =
        "Cross-entropy per sample: loss = -sum_k q_k * log softmax(logits)_k with targets "
        "q = (1 - label_smoothing) * t + label_smoothing / K, where t is one at the label or "
        "the given probabilities; 0 for ignored labels.",
    .inputs = {{"logits"}, {"labels", DTypeClass::kAny}},
    .outputs = {{"loss"}},
    .attrs = &TypeOf<SoftmaxCrossEntropyAttrs>(),
    .infer = InferLoss,
    .grad = GradOfLoss,
    .axes = {.fn = LossAxes},
    .cost = LossCost<0>,
    .traits = {.precision = Precision::kKeep32},
    .examples = LossExamples,
};

constinit const OpDef kSoftmaxCrossEntropyGrad = {
    .name = "softmax_cross_entropy_grad",
    .doc =
        "Gradient of softmax_cross_entropy: dlogits_k = dloss * (sum_j q_j * "
        "softmax(logits)_k - q_k); 0 for ignored labels.",
    .inputs = {{"dloss"}, {"logits"}, {"labels", DTypeClass::kAny}},
    .outputs = {{"dlogits"}},
    .attrs = &TypeOf<SoftmaxCrossEntropyAttrs>(),
    .infer = InferGrad,
    .grad = kNoGrad,
    .axes = {.fn = GradAxes},
    .cost = LossCost<1>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 1}}, .linear_in = 0b1},
    .examples = GradExamples,
};

ValueId SoftmaxCrossEntropy(Builder& b, ValueId logits, ValueId labels,
                            SoftmaxCrossEntropyAttrs attrs) {
  return b.Add1(kSoftmaxCrossEntropy, AnyStruct::Of(attrs), {logits, labels});
}

std::vector<const OpDef*> SoftmaxCrossEntropyRows() {
  return {&kSoftmaxCrossEntropy, &kSoftmaxCrossEntropyGrad};
}

}  // namespace capstan
