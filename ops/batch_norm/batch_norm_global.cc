// The parts of batch norm over the whole batch: sums that add up over slices of n, and elementwise
// rows that use them. The forward sums are f64: sum and squares of f32 would lose the variance of
// channels whose mean is large.
#include "ops/batch_norm/norm_call.h"

namespace capstan {
namespace {

absl::Status InferStats(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 0, {}));
  const TensorType sums = {DType::kF64, {call.In(0).shape[1]}};
  call.outputs = {sums, sums, sums};
  return absl::OkStatus();
}

absl::Status InferMoments(OpCall& call) {
  const TensorType& running = call.In(0);
  if (running.ndim() != 1 || call.In(1) != running) {
    return InvalidArgument("running_mean and running_var must both be [c], of one element type");
  }
  for (int i = 2; i < 5; ++i) {
    if (call.In(i) != TensorType{DType::kF64, running.shape}) {
      return InvalidArgument("{} must be f64{}, as batch_norm_stats makes it",
                             call.op->inputs[i].name, running.shape.ToString());
    }
  }
  call.outputs.assign(4, running);
  return absl::OkStatus();
}

absl::Status InferApply(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 0, {5}));
  RETURN_IF_ERROR(CheckChannels(call, 0, {1, 2, 3, 4}));
  call.outputs = {LikeImage(call, 0)};
  return absl::OkStatus();
}

absl::Status InferGradStats(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 1, {0, 4}));
  RETURN_IF_ERROR(CheckChannels(call, 1, {2, 3}));
  RETURN_IF_ERROR(CheckFusedRelu(call, call.Attrs<BatchNormPartAttrs>().relu, 4));
  const TensorType channels = LikeChannels(call, 2);
  call.outputs = {channels, channels};
  return absl::OkStatus();
}

absl::Status InferGradApply(OpCall& call) {
  RETURN_IF_ERROR(CheckImage(call, 1, {0, 8}));
  RETURN_IF_ERROR(CheckChannels(call, 1, {2, 3, 4, 6, 7}));
  RETURN_IF_ERROR(CheckFusedRelu(call, call.Attrs<BatchNormPartAttrs>().relu, 8));
  if (call.In(5) != TensorType{DType::kF64, {call.In(1).shape[1]}}) {
    return InvalidArgument("count must be f64[{}], as batch_norm_stats makes it",
                           call.In(1).shape[1]);
  }
  call.outputs = {LikeImage(call, 1)};
  return absl::OkStatus();
}

std::string PartAxes(const OpCall& call) { return NormAxes(call, "n", true); }

template <int kFlops>
Cost PerInputElement(const OpCall& call) {
  return {static_cast<double>(kFlops) * static_cast<double>(call.In(0).count()),
          ArgumentBytes(call)};
}

AnyStruct Relu(bool relu) { return AnyStruct::Of(BatchNormPartAttrs{.relu = relu}); }

std::vector<Example> StatsExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {{.attrs = none, .inputs = {FloatInput({2, 3, 4, 5})}},
          {.attrs = none, .inputs = {FloatInput({6, 5})}},
          {.attrs = none, .inputs = {FloatInput({6})}, .error = "[n, c, ...]"}};
}

std::vector<Example> MomentsExamples() {
  const auto example = [](BatchNormMomentsAttrs attrs, std::vector<double> count) {
    const TensorType sums = {DType::kF64, {3}};
    return Example{.attrs = AnyStruct::Of(attrs),
                   .inputs = {FloatInput({3}), FloatInput({3}, Draw::kPositive),
                              ValuesInput(sums, std::move(count)), ValuesInput(sums, {10, -4, 0}),
                              ValuesInput(sums, {100, 8, 0.5})}};
  };
  Example f32_sums = example({}, {8, 8, 8});
  f32_sums.inputs[3] = FloatInput({2});
  f32_sums.error = "sum must be f64[3]";
  return {example({}, {8, 8, 8}), example({.momentum = 0, .epsilon = 0.1}, {20, 20, 20}), f32_sums};
}

std::vector<Example> ApplyExamples() {
  const auto example = [](bool relu, Shape shape, bool residual) {
    const Shape c = {shape[1]};
    Example e{.attrs = Relu(relu),
              .inputs = {FloatInput(shape), FloatInput(c), FloatInput(c), FloatInput(c),
                         FloatInput(c, Draw::kPositive)}};
    if (residual) e.inputs.push_back(FloatInput(shape));
    return e;
  };
  Example wrong = example(false, {2, 3}, false);
  wrong.inputs[3] = FloatInput({2});
  wrong.error = "mean must be f32[3]";
  return {example(false, {2, 3, 4, 5}, false), example(true, {3, 5, 2, 2}, true),
          example(true, {6, 5}, false), wrong};
}

std::vector<Example> GradStatsExamples() {
  const auto example = [](bool relu, Shape shape) {
    const Shape c = {shape[1]};
    Example e{.attrs = Relu(relu),
              .inputs = {FloatInput(shape), FloatInput(shape), FloatInput(c),
                         FloatInput(c, Draw::kPositive)}};
    if (relu) e.inputs.push_back(FloatInput(shape));
    return e;
  };
  Example no_y = example(false, {2, 3});
  no_y.attrs = Relu(true);
  no_y.error = "needs y";
  return {example(false, {2, 3, 4, 5}), example(true, {6, 5}), no_y};
}

std::vector<Example> GradApplyExamples() {
  const auto example = [](bool relu, Shape shape) {
    const Shape c = {shape[1]};
    const std::vector<double> count(static_cast<size_t>(c[0]), 40);
    Example e{.attrs = Relu(relu),
              .inputs = {FloatInput(shape), FloatInput(shape), FloatInput(c), FloatInput(c),
                         FloatInput(c, Draw::kPositive), ValuesInput({DType::kF64, c}, count),
                         FloatInput(c), FloatInput(c)}};
    if (relu) e.inputs.push_back(FloatInput(shape));
    return e;
  };
  Example wrong = example(false, {2, 3});
  wrong.inputs[5] = ValuesInput({DType::kF64, {1}}, {6});
  wrong.error = "count must be f64[3]";
  return {example(false, {2, 3, 4, 5}), example(true, {6, 5}), wrong};
}

}  // namespace

constinit const OpDef kBatchNormStats = {
    .name = "batch_norm_stats",
    .doc = "Sums per channel that add up over slices of a batch: count, sum of x, sum of x^2.",
    .inputs = {{"x"}},
    .outputs = {{"count"}, {"sum"}, {"squares"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferStats,
    .grad = kNoGrad,
    .axes = {.fn = PartAxes},
    .cost = PerInputElement<3>,
    .traits = {.precision = Precision::kKeep32, .layout = LayoutNeed::kFollow, .narrow_in = 0b1},
    .examples = StatsExamples,
};

constinit const OpDef kBatchNormMoments = {
    .name = "batch_norm_moments",
    .doc =
        "Statistics from sums: mean = sum / count, variance = squares / count - mean^2, invstd = "
        "1 / sqrt(variance + epsilon); new running = momentum * old + (1 - momentum) * batch.",
    .inputs = {{"running_mean"}, {"running_var"}, {"count"}, {"sum"}, {"squares"}},
    .outputs = {{"mean"}, {"invstd"}, {"new_running_mean"}, {"new_running_var"}},
    .attrs = &TypeOf<BatchNormMomentsAttrs>(),
    .infer = InferMoments,
    .grad = kNoGrad,
    .axes = {.text = "c, c, c, c, c -> c, c, c, c"},
    .cost = ElementwiseCost<12>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{2, 0}, {3, 1}}},
    .examples = MomentsExamples,
};

constinit const OpDef kBatchNormApply = {
    .name = "batch_norm_apply",
    .doc = "Normalises with given moments: y = (x - mean) * invstd * scale + bias (+ residual).",
    .inputs =
        {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"invstd"}, {.name = "residual", .optional = true}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<BatchNormPartAttrs>(),
    .infer = InferApply,
    .grad = kNoGrad,
    .axes = {.fn = PartAxes},
    .cost = ElementwiseCost<4>,
    .traits = {.precision = Precision::kKeep32,
               .in_place = {{0, 0}, {0, 5}},
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b100001},
    .examples = ApplyExamples,
};

constinit const OpDef kBatchNormGradStats = {
    .name = "batch_norm_grad_stats",
    .doc =
        "Sums per channel of batch_norm's gradient, which add up over slices of a batch: sum of "
        "dy (dbias) and sum of dy * (x - mean) * invstd (dscale).",
    .inputs = {{"dy"}, {"x"}, {"mean"}, {"invstd"}, {.name = "y", .optional = true}},
    .outputs = {{"sum_dy"}, {"sum_dy_xhat"}},
    .attrs = &TypeOf<BatchNormPartAttrs>(),
    .infer = InferGradStats,
    .grad = kNoGrad,
    .axes = {.fn = PartAxes},
    .cost = PerInputElement<4>,
    .traits = {.precision = Precision::kKeep32,
               .linear_in = 0b1,
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b10011},
    .examples = GradStatsExamples,
};

constinit const OpDef kBatchNormGradApply = {
    .name = "batch_norm_grad_apply",
    .doc =
        "Gradient of batch_norm's x from given sums: dx = scale * invstd * (dy - sum_dy / count - "
        "(x - mean) * invstd * sum_dy_xhat / count).",
    .inputs = {{"dy"},
               {"x"},
               {"scale"},
               {"mean"},
               {"invstd"},
               {"count"},
               {"sum_dy"},
               {"sum_dy_xhat"},
               {.name = "y", .optional = true}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<BatchNormPartAttrs>(),
    .infer = InferGradApply,
    .grad = kNoGrad,
    .axes = {.fn = PartAxes},
    .cost = ElementwiseCost<5>,
    .traits = {.precision = Precision::kKeep32,
               .in_place = {{0, 0}, {0, 1}},
               .layout = LayoutNeed::kFollow,
               .narrow_in = 0b100000011},
    .examples = GradApplyExamples,
};

}  // namespace capstan
