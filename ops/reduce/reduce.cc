#include "ops/reduce/reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status CheckAxes(const std::vector<int64_t>& axes, int ndim) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= ndim) {
      return InvalidArgument("axis {} is not one of the {} dimensions", axes[i], ndim);
    }
    if (i > 0 && axes[i] <= axes[i - 1]) return InvalidArgument("axes must ascend, each once");
  }
  return absl::OkStatus();
}

Shape ReducedShape(const Shape& x, const ReduceAttrs& attrs) {
  const std::vector<bool> reduced = ReducedDims(attrs.axes, x.ndim());
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!reduced[static_cast<size_t>(d)]) {
      shape.Append(x[d]);
    } else if (attrs.keep_dims) {
      shape.Append(1);
    }
  }
  return shape;
}

absl::Status CheckReduction(const OpCall& call) {
  RETURN_IF_ERROR(CheckAxes(call.Attrs<ReduceAttrs>().axes, call.In(0).ndim()));
  if (call.In(0).count() == 0) return InvalidArgument("nothing to reduce: x is empty");
  return absl::OkStatus();
}

absl::Status InferReduce(OpCall& call) {
  RETURN_IF_ERROR(CheckReduction(call));
  const TensorType& x = call.In(0);
  call.outputs = {{x.dtype, ReducedShape(x.shape, call.Attrs<ReduceAttrs>())}};
  return absl::OkStatus();
}

absl::Status InferReduceMaxGrad(OpCall& call) {
  RETURN_IF_ERROR(CheckReduction(call));
  const Shape reduced = ReducedShape(call.In(0).shape, call.Attrs<ReduceAttrs>());
  if (call.In(1).shape != reduced || call.In(1).dtype != call.In(0).dtype) {
    return InvalidArgument("dy must be the {} of the reduced x", reduced.ToString());
  }
  return InferLikeInput0(call);
}

absl::Status InferBroadcast(OpCall& call) {
  const auto& attrs = call.Attrs<BroadcastAttrs>();
  const TensorType& x = call.In(0);
  const size_t added = attrs.axes.size();
  if (added != attrs.sizes.size()) {
    return InvalidArgument("{} axes but {} sizes", added, attrs.sizes.size());
  }
  const int ndim = x.ndim() + (attrs.keep_dims ? 0 : static_cast<int>(added));
  if (ndim > Shape::kMaxNdim) return InvalidArgument("y would have {} dimensions", ndim);
  RETURN_IF_ERROR(CheckAxes(attrs.axes, ndim));
  Shape shape;
  size_t next = 0;
  for (int d = 0, from = 0; d < ndim; ++d) {
    const bool repeats = next < added && attrs.axes[next] == d;
    if (repeats && attrs.keep_dims && x.shape[d] != 1) {
      return InvalidArgument("dimension {} of x is {}, not 1", d, x.shape[d]);
    }
    if (repeats && attrs.sizes[next] < 1) {
      return InvalidArgument("size {} is not positive", attrs.sizes[next]);
    }
    shape.Append(repeats ? attrs.sizes[next] : x.shape[from]);
    from += !repeats || attrs.keep_dims ? 1 : 0;
    next += repeats ? 1 : 0;
  }
  call.outputs = {{x.dtype, shape}};
  return absl::OkStatus();
}

// The broadcast that repeats a reduction's result to the shape of its argument.
BroadcastAttrs Undo(const ReduceAttrs& attrs, const Shape& x) {
  BroadcastAttrs undo{.keep_dims = attrs.keep_dims};
  const std::vector<bool> reduced = ReducedDims(attrs.axes, x.ndim());
  for (int d = 0; d < x.ndim(); ++d) {
    if (!reduced[static_cast<size_t>(d)]) continue;
    undo.axes.push_back(d);
    undo.sizes.push_back(x[d]);
  }
  return undo;
}

void GradOfReduceSum(GradContext& g) {
  g.Set(0, Broadcast(g.b(), g.dout(0), Undo(g.Attrs<ReduceAttrs>(), g.b().shape(g.in(0)))));
}

void GradOfReduceMean(GradContext& g) {
  BroadcastAttrs attrs = Undo(g.Attrs<ReduceAttrs>(), g.b().shape(g.in(0)));
  for (const int64_t size : attrs.sizes) attrs.scale /= static_cast<double>(size);
  g.Set(0, Broadcast(g.b(), g.dout(0), std::move(attrs)));
}

void GradOfReduceMax(GradContext& g) {
  g.Set(0, g.b().Add1(kReduceMaxGrad, g.attrs(), {g.in(0), g.dout(0)}));
}

void GradOfBroadcast(GradContext& g) {
  const BroadcastAttrs attrs = g.Attrs<BroadcastAttrs>();
  ValueId grad = g.dout(0);
  // A reduction without axes would reduce all dimensions.
  if (!attrs.axes.empty()) grad = ReduceSum(g.b(), grad, attrs.axes, attrs.keep_dims);
  if (attrs.scale != 1) grad = Broadcast(g.b(), grad, {.scale = attrs.scale});
  g.Set(0, grad);
}

// Dimensions of a tensor and of its reduction; `mark` follows each reduced factor.
struct ReductionDims {
  std::vector<std::string> whole, reduced;
};
ReductionDims DimsOf(const ReduceAttrs& attrs, int ndim, const char* mark) {
  const std::vector<bool> reduces = ReducedDims(attrs.axes, ndim);
  ReductionDims dims;
  for (int d = 0; d < ndim; ++d) {
    const bool gone = reduces[static_cast<size_t>(d)];
    dims.whole.push_back(fmt::format("d{}{}", d, gone ? mark : ""));
    if (!gone) dims.reduced.push_back(dims.whole.back());
    if (gone && attrs.keep_dims) dims.reduced.emplace_back("1");
  }
  return dims;
}

std::string SplittableAxes(const OpCall& call) {
  const ReductionDims d = DimsOf(call.Attrs<ReduceAttrs>(), call.In(0).ndim(), "");
  return JoinDims(d.whole) + " -> " + JoinDims(d.reduced);
}

// A mean divides by the sizes that it reduces.
std::string MeanAxes(const OpCall& call) {
  const ReductionDims d = DimsOf(call.Attrs<ReduceAttrs>(), call.In(0).ndim(), "!");
  return JoinDims(d.whole) + " -> " + JoinDims(d.reduced);
}

// The first maximum is one of the whole.
std::string MaxGradAxes(const OpCall& call) {
  const ReductionDims d = DimsOf(call.Attrs<ReduceAttrs>(), call.In(0).ndim(), "!");
  return JoinDims(d.whole) + ", " + JoinDims(d.reduced) + " -> " + JoinDims(d.whole);
}

std::string BroadcastAxes(const OpCall& call) {
  const auto& attrs = call.Attrs<BroadcastAttrs>();
  const int ndim = call.Out(0).ndim();
  if (attrs.axes.empty()) return "b* -> b*";
  const ReduceAttrs repeated{.axes = attrs.axes, .keep_dims = attrs.keep_dims};
  const ReductionDims d = DimsOf(repeated, ndim, "");
  std::vector<std::string> bound;
  for (const int64_t axis : attrs.axes) bound.push_back(fmt::format("d{}", axis));
  return JoinDims(d.reduced) + " -> " + JoinDims(d.whole) + " | sizes=[" + JoinDims(bound) + "]";
}

Cost ReduceCost(const OpCall& call) {
  return {static_cast<double>(call.In(0).count()), ArgumentBytes(call)};
}

AnyStruct Over(std::vector<int64_t> axes, bool keep_dims = false) {
  return AnyStruct::Of(ReduceAttrs{.axes = std::move(axes), .keep_dims = keep_dims});
}

// Examples of a reduction whose inputs are drawn by `draw`.
template <Draw draw>
std::vector<Example> ReduceExamples() {
  return {
      {.attrs = Over({}), .inputs = {FloatInput({2, 3, 4, 5}, draw)}},
      {.attrs = Over({2, 3}), .inputs = {FloatInput({2, 3, 4, 5}, draw)}},
      {.attrs = Over({0, 2}, true), .inputs = {FloatInput({3, 4, 6}, draw)}},
      {.attrs = Over({1}), .inputs = {FloatInput({7, 1}, draw)}},
      {.attrs = Over({2}), .inputs = {FloatInput({3, 4})}, .error = "axis 2 is not one of the 2"},
      {.attrs = Over({}), .inputs = {FloatInput({3, 0})}, .error = "x is empty"},
  };
}

std::vector<Example> ReduceMaxGradExamples() {
  const TensorType tied = {DType::kF32, {2, 3}};
  return {
      {.attrs = Over({1}), .inputs = {FloatInput({3, 5}, Draw::kDistinct), FloatInput({3})}},
      {.attrs = Over({0, 2}, true),
       .inputs = {FloatInput({3, 4, 6}, Draw::kDistinct), FloatInput({1, 4, 1})}},
      {.attrs = Over({1}), .inputs = {ValuesInput(tied, {1, 2, 2, 0, 0, 0}), FloatInput({2})}},
      {.attrs = Over({1}), .inputs = {FloatInput({3, 5}), FloatInput({5})}, .error = "[3]"},
  };
}

std::vector<Example> BroadcastExamples() {
  const auto attrs = [](BroadcastAttrs a) { return AnyStruct::Of(std::move(a)); };
  return {
      {.attrs = attrs({.axes = {1, 2}, .sizes = {3, 4}}), .inputs = {FloatInput({2, 5})}},
      {.attrs = attrs({.axes = {0, 2}, .sizes = {3, 5}, .keep_dims = true, .scale = 0.5}),
       .inputs = {FloatInput({1, 4, 1})}},
      {.attrs = attrs({.axes = {0}, .sizes = {7}}), .inputs = {FloatInput({})}},
      {.attrs = attrs({.scale = 3}), .inputs = {FloatInput({2, 3})}},
      {.attrs = attrs({.axes = {1}, .sizes = {3}, .keep_dims = true}),
       .inputs = {FloatInput({2, 2})},
       .error = "dimension 1 of x is 2, not 1"},
      {.attrs = attrs({.axes = {0}}), .inputs = {FloatInput({2})}, .error = "1 axes but 0 sizes"},
  };
}

ValueId Reduce(Builder& b, const OpDef& op, ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  if (!b.ok()) return kNoValue;
  for (int64_t& axis : axes) axis += axis < 0 ? b.type(x).ndim() : 0;
  std::sort(axes.begin(), axes.end());
  return b.Add1(op, AnyStruct::Of(ReduceAttrs{std::move(axes), keep_dims}), {x});
}

}  // namespace

constinit const OpDef kReduceSum = {
    .name = "reduce_sum",
    .doc = "Sum over dimensions: y = sum_axes x.",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<ReduceAttrs>(),
    .infer = InferReduce,
    .grad = GradOfReduceSum,
    .axes = {.fn = SplittableAxes},
    .cost = ReduceCost,
    .traits = {.precision = Precision::kKeep32, .linear_in = 0b1},
    .examples = ReduceExamples<Draw::kNormal>,
};

constinit const OpDef kReduceMean = {
    .name = "reduce_mean",
    .doc = "Mean over dimensions: y = sum_axes x / (number of elements summed).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<ReduceAttrs>(),
    .infer = InferReduce,
    .grad = GradOfReduceMean,
    .axes = {.fn = MeanAxes},
    .cost = ReduceCost,
    .traits = {.precision = Precision::kKeep32, .linear_in = 0b1},
    .examples = ReduceExamples<Draw::kNormal>,
};

constinit const OpDef kReduceMax = {
    .name = "reduce_max",
    .doc = "Maximum over dimensions: y = max_axes x; a NaN among them gives NaN.",
    .inputs = {{"x"}},
    .outputs = {{.name = "y", .combine = Combine::kMax}},
    .attrs = &TypeOf<ReduceAttrs>(),
    .infer = InferReduce,
    .grad = GradOfReduceMax,
    .axes = {.fn = SplittableAxes},
    .cost = ReduceCost,
    .examples = ReduceExamples<Draw::kDistinct>,
};

constinit const OpDef kReduceMaxGrad = {
    .name = "reduce_max_grad",
    .doc = "Gradient of reduce_max: dx = dy at the first maximum in row-major order, else 0.",
    .inputs = {{"x"}, {"dy"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<ReduceAttrs>(),
    .infer = InferReduceMaxGrad,
    .grad = kNoGrad,
    .axes = {.fn = MaxGradAxes},
    .cost = ReduceCost,
    .traits = {.linear_in = 0b10},
    .examples = ReduceMaxGradExamples,
};

constinit const OpDef kBroadcast = {
    .name = "broadcast",
    .doc = "Repeats x along new dimensions, or dimensions of size one: y = scale * x.",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<BroadcastAttrs>(),
    .infer = InferBroadcast,
    .grad = GradOfBroadcast,
    .axes = {.fn = BroadcastAxes},
    .cost = ElementwiseCost<1>,
    .traits = {.linear_in = 0b1},
    .examples = BroadcastExamples,
};

std::vector<bool> ReducedDims(const std::vector<int64_t>& axes, int ndim) {
  std::vector<bool> reduced(static_cast<size_t>(ndim), axes.empty());
  for (const int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  return reduced;
}

ValueId ReduceSum(Builder& b, ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, kReduceSum, x, std::move(axes), keep_dims);
}

ValueId ReduceMean(Builder& b, ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, kReduceMean, x, std::move(axes), keep_dims);
}

ValueId ReduceMax(Builder& b, ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, kReduceMax, x, std::move(axes), keep_dims);
}

ValueId Broadcast(Builder& b, ValueId x, BroadcastAttrs attrs) {
  return b.Add1(kBroadcast, AnyStruct::Of(std::move(attrs)), {x});
}

std::vector<const OpDef*> ReduceRows() {
  return {&kReduceSum, &kReduceMean, &kReduceMax, &kReduceMaxGrad, &kBroadcast};
}

}  // namespace capstan
