// Normalisation with the running statistics: evaluation, and training with frozen ones.
#include "engine/ir/grad.h"
#include "ops/batch_norm/norm_call.h"
#include "ops/relu/relu.h"

namespace capstan {
namespace {

absl::Status InferInference(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 0, {5}));
  RETURN_IF_ERROR(CheckChannels(call, 0, {1, 2, 3, 4}));
  call.outputs = {LikeImage(call, 0)};
  return absl::OkStatus();
}

absl::Status InferInferenceGrad(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 1, {0}));
  RETURN_IF_ERROR(CheckChannels(call, 1, {2, 3, 4}));
  const TensorType channels = LikeChannels(call, 2);
  call.outputs = {LikeImage(call, 1), channels, channels};
  return absl::OkStatus();
}

void GradOfInference(GradContext& g) {
  const BatchNormInferenceAttrs attrs = g.Attrs<BatchNormInferenceAttrs>();
  const ValueId dy = attrs.relu ? g.b().Add1(kReluGrad, {}, {g.out(0), g.dout(0)}) : g.dout(0);
  if (g.needs(5)) g.Set(5, dy);
  if (!g.needs(0) && !g.needs(1) && !g.needs(2)) return;
  const std::vector<ValueId> grads = g.b().Add(
      kBatchNormInferenceGrad, AnyStruct::Of(BatchNormInferenceGradAttrs{.epsilon = attrs.epsilon}),
      {dy, g.in(0), g.in(1), g.in(3), g.in(4)});
  for (int i = 0; i < 3; ++i) g.Set(i, grads[static_cast<size_t>(i)]);
}

std::string InferenceAxes(const OpCall& call) { return NormAxes(call, "n", true); }

std::vector<Example> InferenceExamples() {
  const auto example = [](BatchNormInferenceAttrs attrs, Shape shape, bool residual) {
    const Shape c = {shape[1]};
    Example e{.attrs = AnyStruct::Of(attrs),
              .inputs = {FloatInput(shape), FloatInput(c), FloatInput(c), FloatInput(c),
                         FloatInput(c, Draw::kPositive)},
              .differentiate = {0, 1, 2}};
    if (residual) {
      e.inputs.push_back(FloatInput(shape));
      e.differentiate.push_back(5);
    }
    return e;
  };
  Example wrong_residual = example({}, {2, 3, 4, 5}, true);
  wrong_residual.inputs[5] = FloatInput({2, 3, 4, 4});
  wrong_residual.error = "residual must have the shape";
  return {example({}, {2, 3, 4, 5}, false), example({.epsilon = 0.1}, {1, 5}, false),
          example({.relu = true}, {3, 40, 5, 7}, true), wrong_residual};
}

std::vector<Example> InferenceGradExamples() {
  const auto example = [](double epsilon, Shape shape) {
    const Shape c = {shape[1]};
    return Example{.attrs = AnyStruct::Of(BatchNormInferenceGradAttrs{.epsilon = epsilon}),
                   .inputs = {FloatInput(shape), FloatInput(shape), FloatInput(c), FloatInput(c),
                              FloatInput(c, Draw::kPositive)}};
  };
  Example vector = example(1e-5, {2, 3});
  vector.inputs[0] = vector.inputs[1] = FloatInput({6});
  vector.error = "[n, c, ...]";
  return {example(1e-5, {2, 3, 4, 5}), example(0.1, {6, 5}), vector};
}

}  // namespace

constinit const OpDef kBatchNormInference = {
    .name = "batch_norm_inference",
    .doc =
        "Normalises each channel with given statistics: y = (x - running_mean) / "
        "sqrt(running_var + epsilon) * scale + bias (+ residual).",
    .inputs = {{"x"},
               {"scale"},
               {"bias"},
               {"running_mean"},
               {"running_var"},
               {.name = "residual", .optional = true}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<BatchNormInferenceAttrs>(),
    .infer = InferInference,
    .grad = GradOfInference,
    .axes = {.fn = InferenceAxes},
    .cost = ElementwiseCost<4>,
    .traits = {.precision = Precision::kKeep32,
               .in_place = {{0, 0}, {0, 5}},
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b100001},
    .rewrites = {{"relu_into_batch_norm_inference", "relu", FuseReluIntoInference},
                 {"add_relu_into_batch_norm_inference", "relu", FuseAddReluIntoInference}},
    .examples = InferenceExamples,
};

constinit const OpDef kBatchNormInferenceGrad = {
    .name = "batch_norm_inference_grad",
    .doc =
        "Gradient of batch_norm_inference: with invstd = 1 / sqrt(running_var + epsilon), dx = "
        "dy * scale * invstd, dscale = sum of dy * (x - running_mean) * invstd, dbias = sum of "
        "dy.",
    .inputs = {{"dy"}, {"x"}, {"scale"}, {"running_mean"}, {"running_var"}},
    .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
    .attrs = &TypeOf<BatchNormInferenceGradAttrs>(),
    .infer = InferInferenceGrad,
    .grad = kNoGrad,
    .axes = {.fn = InferenceAxes},
    .cost = ElementwiseCost<6>,
    .traits = {.precision = Precision::kKeep32,
               .in_place = {{0, 0}, {0, 1}},
               .linear_in = 0b1,
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b11},
    .examples = InferenceGradExamples,
};

}  // namespace capstan
