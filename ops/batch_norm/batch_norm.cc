#include "ops/batch_norm/batch_norm.h"

#include "engine/ir/grad.h"
#include "ops/batch_norm/norm_call.h"
#include "ops/relu/relu.h"

namespace capstan {
namespace {

absl::Status InferBatchNorm(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 0, {5}));
  RETURN_IF_ERROR(CheckChannels(call, 0, {1, 2, 3, 4}));
  if (ValuesPerChannel(call.In(0).shape) == 1) {
    return InvalidArgument(
        "batch norm over one value per channel: its variance is not defined; use a bigger batch");
  }
  const TensorType channels = LikeChannels(call, 1);
  call.outputs = {LikeImage(call, 0), channels, channels, channels, channels};
  return absl::OkStatus();
}

absl::Status InferBatchNormGrad(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 1, {0, 5}));
  RETURN_IF_ERROR(CheckChannels(call, 1, {2, 3, 4}));
  RETURN_IF_ERROR(CheckFusedRelu(call, call.Attrs<BatchNormGradAttrs>().relu, 5));
  const TensorType channels = LikeChannels(call, 2);
  call.outputs = {LikeImage(call, 1), channels, channels};
  return absl::OkStatus();
}

void GradOfBatchNorm(GradContext& g) {
  // The statistics are results for the record; no loss is a function of them.
  if (g.dout(0) == kNoValue) return;
  const BatchNormAttrs attrs = g.Attrs<BatchNormAttrs>();
  const ValueId dy = attrs.relu ? g.b().Add1(kReluGrad, {}, {g.out(0), g.dout(0)}) : g.dout(0);
  if (g.needs(5)) g.Set(5, dy);
  if (!g.needs(0) && !g.needs(1) && !g.needs(2)) return;
  const std::vector<ValueId> grads =
      g.b().Add(kBatchNormGrad,
                AnyStruct::Of(BatchNormGradAttrs{.epsilon = attrs.epsilon, .stats = attrs.stats}),
                {dy, g.in(0), g.in(1), g.out(1), g.out(2)});
  for (int i = 0; i < 3; ++i) g.Set(i, grads[static_cast<size_t>(i)]);
}

std::string AxesByStats(const OpCall& call, BatchStats stats) {
  return NormAxes(call, stats == BatchStats::kLocal ? "n~" : "n!", false);
}

std::string BatchNormAxes(const OpCall& call) {
  return AxesByStats(call, call.Attrs<BatchNormAttrs>().stats);
}

std::string BatchNormGradAxes(const OpCall& call) {
  return AxesByStats(call, call.Attrs<BatchNormGradAttrs>().stats);
}

std::vector<Example> BatchNormExamples() {
  const auto example = [](BatchNormAttrs attrs, Shape shape, bool residual) {
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
  Example one_value = example({}, {1, 3, 1, 1}, false);
  one_value.error = "over one value";
  Example wrong_size = example({}, {2, 3, 4, 5}, false);
  wrong_size.inputs[2] = FloatInput({4});
  wrong_size.error = "bias must be f32[3]";
  return {example({}, {2, 3, 4, 5}, false),
          example({.momentum = 0.5, .epsilon = 0.1}, {6, 5}, false),
          example({.stats = BatchStats::kGlobal, .relu = true}, {3, 40, 5, 7}, true),
          example({.relu = true}, {4, 1, 1, 1}, false),
          one_value,
          wrong_size};
}

std::vector<Example> BatchNormGradExamples() {
  const auto example = [](BatchNormGradAttrs attrs, Shape shape) {
    // Statistics do not depend on the bias or the running ones: scale stands in for those.
    const std::vector<int> forward = {1, 2, 2, 2, 2};
    const AnyStruct forward_attrs = AnyStruct::Of(
        BatchNormAttrs{.epsilon = attrs.epsilon, .stats = attrs.stats, .relu = attrs.relu});
    Example e{
        .attrs = AnyStruct::Of(attrs),
        .inputs = {FloatInput(shape), FloatInput(shape), FloatInput({shape[1]}, Draw::kPositive),
                   ForwardInput(kBatchNorm, forward_attrs, forward, 1),
                   ForwardInput(kBatchNorm, forward_attrs, forward, 2)}};
    if (attrs.relu) e.inputs.push_back(ForwardInput(kBatchNorm, forward_attrs, forward, 0));
    return e;
  };
  Example no_y = example({}, {2, 3, 4, 5});
  no_y.attrs = AnyStruct::Of(BatchNormGradAttrs{.relu = true});
  no_y.error = "needs y";
  return {example({}, {2, 3, 4, 5}), example({.epsilon = 0.1}, {6, 5}),
          example({.stats = BatchStats::kGlobal, .relu = true}, {3, 40, 5, 7}), no_y};
}

}  // namespace

constinit const OpDef kBatchNorm = {
    .name = "batch_norm",
    .doc =
        "Normalises each channel over the batch: y = (x - mean) * invstd * scale + bias "
        "(+ residual), invstd = 1 / sqrt(variance + epsilon).",
    .inputs = {{"x"},
               {"scale"},
               {"bias"},
               {"running_mean"},
               {"running_var"},
               {.name = "residual", .optional = true}},
    .outputs = {{"y"}, {"mean"}, {"invstd"}, {"new_running_mean"}, {"new_running_var"}},
    .attrs = &TypeOf<BatchNormAttrs>(),
    .infer = InferBatchNorm,
    .grad = GradOfBatchNorm,
    .axes = {.fn = BatchNormAxes},
    .cost = ElementwiseCost<7>,
    .traits = {.precision = Precision::kKeep32,
               .in_place = {{0, 0}, {0, 5}, {3, 3}, {4, 4}},
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b100001},
    .rewrites = {{"relu_into_batch_norm", "relu", FuseReluIntoBatchNorm},
                 {"add_relu_into_batch_norm", "relu", FuseAddReluIntoBatchNorm},
                 {"relu_grad_into_batch_norm_grad", "batch_norm_grad",
                  FuseReluGradIntoBatchNormGrad}},
    .examples = BatchNormExamples,
};

constinit const OpDef kBatchNormGrad = {
    .name = "batch_norm_grad",
    .doc =
        "Gradient of batch_norm: with xhat = (x - mean) * invstd, dbias = sum of dy, dscale = "
        "sum of dy * xhat, dx = scale * invstd * (dy - dbias / count - xhat * dscale / count).",
    .inputs = {{"dy"}, {"x"}, {"scale"}, {"mean"}, {"invstd"}, {.name = "y", .optional = true}},
    .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
    .attrs = &TypeOf<BatchNormGradAttrs>(),
    .infer = InferBatchNormGrad,
    .grad = kNoGrad,
    .axes = {.fn = BatchNormGradAxes},
    .cost = ElementwiseCost<9>,
    .traits = {.precision = Precision::kKeep32,
               .in_place = {{0, 0}, {0, 1}},
               .linear_in = 0b1,
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b100011},
    .examples = BatchNormGradExamples,
};

ValueId BatchNorm(Builder& b, ValueId x, const BatchNormOptions& options) {
  if (!b.ok()) return kNoValue;
  if (b.shape(x).ndim() < 2) {
    b.Fail(InvalidArgument("batch norm of {}: it needs the dimensions [n, c, ...]",
                           b.type(x).ToString()));
    return kNoValue;
  }
  const Shape channels = {b.shape(x)[1]};
  const TensorType state = {b.dtype(), channels};
  const ValueId weight = b.Param("weight", channels, Role::kNorm, options.scale);
  const ValueId bias = b.Param("bias", channels, Role::kNorm, Constant(0));
  const ValueId mean = b.State("running_mean", state, Constant(0));
  const ValueId var = b.State("running_var", state, Constant(1));
  if (!b.training()) {
    return b.Add1(kBatchNormInference,
                  AnyStruct::Of(BatchNormInferenceAttrs{.epsilon = options.epsilon}),
                  {x, weight, bias, mean, var});
  }
  const BatchNormAttrs attrs = {
      .momentum = options.momentum, .epsilon = options.epsilon, .stats = options.stats};
  const std::vector<ValueId> out =
      b.Add(kBatchNorm, AnyStruct::Of(attrs), {x, weight, bias, mean, var});
  if (b.ok()) {
    b.graph().AddUpdate(mean, out[3]);
    b.graph().AddUpdate(var, out[4]);
  }
  return out[0];
}

std::vector<const OpDef*> BatchNormRows() {
  return {&kBatchNorm,      &kBatchNormGrad,      &kBatchNormInference,
          &kBatchNormStats, &kBatchNormMoments,   &kBatchNormInferenceGrad,
          &kBatchNormApply, &kBatchNormGradStats, &kBatchNormGradApply};
}

}  // namespace capstan
