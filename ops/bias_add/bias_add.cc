#include "ops/bias_add/bias_add.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status CheckAxis(const OpCall& call) {
  const int64_t axis = call.Attrs<BiasAddAttrs>().axis;
  const int ndim = call.In(0).ndim();
  if (axis < -ndim || axis >= ndim) {
    return InvalidArgument("axis {} does not exist, input 0 has {} dimensions", axis, ndim);
  }
  return absl::OkStatus();
}

absl::Status InferBiasAdd(OpCall& call) {
  RETURN_IF_ERROR(CheckAxis(call));
  const TensorType &x = call.In(0), &bias = call.In(1);
  const int axis = BiasAxis(call.attrs, x.ndim());
  if (bias.dtype != x.dtype) return InvalidArgument("x and bias need the same element type");
  if (bias.ndim() != 1 || bias.shape[0] != x.shape[axis]) {
    return InvalidArgument("the bias must be [{}], the size of x along axis {}", x.shape[axis],
                           axis);
  }
  return InferLikeInput0(call);
}

absl::Status InferBiasAddGrad(OpCall& call) {
  RETURN_IF_ERROR(CheckAxis(call));
  const TensorType& dy = call.In(0);
  call.outputs = {{dy.dtype, {dy.shape[BiasAxis(call.attrs, dy.ndim())]}}};
  return absl::OkStatus();
}

void GradOfBiasAdd(GradContext& g) {
  g.Set(0, g.dout(0));
  if (g.needs(1)) g.Set(1, g.b().Add1(kBiasAddGrad, g.attrs(), {g.dout(0)}));
}

// "d0 c d2" for axis 1 of three dimensions.
std::string DimsWithChannel(const OpCall& call) {
  const int ndim = call.In(0).ndim(), axis = BiasAxis(call.attrs, ndim);
  std::vector<std::string> dims;
  for (int d = 0; d < ndim; ++d) dims.push_back(d == axis ? "c" : "d" + std::to_string(d));
  return JoinDims(dims);
}

std::string BiasAddAxes(const OpCall& call) {
  const std::string dims = DimsWithChannel(call);
  return dims + ", c -> " + dims;
}

std::string BiasAddGradAxes(const OpCall& call) { return DimsWithChannel(call) + " -> c"; }

Cost BiasAddGradCost(const OpCall& call) {
  return {static_cast<double>(call.In(0).count()), ArgumentBytes(call)};
}

AnyStruct Axis(int64_t axis) { return AnyStruct::Of(BiasAddAttrs{.axis = axis}); }

std::vector<Example> BiasAddExamples() {
  return {
      {.attrs = Axis(1), .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({3})}},
      {.attrs = Axis(-1), .inputs = {FloatInput({4, 67}), FloatInput({67})}},
      {.attrs = Axis(0), .inputs = {FloatInput({3, 2, 2}), FloatInput({3})}},
      {.attrs = Axis(-1), .inputs = {FloatInput({5}), FloatInput({5})}},
      {.attrs = Axis(1), .inputs = {FloatInput({3, 4}), FloatInput({3})}, .error = "must be [4]"},
      {.attrs = Axis(2), .inputs = {FloatInput({3, 4}), FloatInput({4})}, .error = "axis 2"},
  };
}

std::vector<Example> BiasAddGradExamples() {
  return {
      {.attrs = Axis(1), .inputs = {FloatInput({2, 3, 4, 5})}},
      {.attrs = Axis(1), .inputs = {FloatInput({3, 40, 7, 5})}},
      {.attrs = Axis(-1), .inputs = {FloatInput({300, 67})}},
      {.attrs = Axis(-1), .inputs = {FloatInput({2, 3, 5})}},
      {.attrs = Axis(-3), .inputs = {FloatInput({3, 4})}, .error = "axis -3"},
  };
}

}  // namespace

constinit const OpDef kBiasAdd = {
    .name = "bias_add",
    .doc = "Adds one number to each slice along an axis: y[.., c, ..] = x[.., c, ..] + bias[c].",
    .inputs = {{"x"}, {"bias"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<BiasAddAttrs>(),
    .infer = InferBiasAdd,
    .grad = GradOfBiasAdd,
    .axes = {.fn = BiasAddAxes},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 0}}, .layout = LayoutNeed::kFollow},
    .examples = BiasAddExamples,
};

constinit const OpDef kBiasAddGrad = {
    .name = "bias_add_grad",
    .doc = "Gradient of bias_add's bias: dbias[c] = sum of dy over all other dimensions.",
    .inputs = {{"dy"}},
    .outputs = {{"dbias"}},
    .attrs = &TypeOf<BiasAddAttrs>(),
    .infer = InferBiasAddGrad,
    .grad = kNoGrad,
    .axes = {.fn = BiasAddGradAxes},
    .cost = BiasAddGradCost,
    .traits = {.linear_in = 0b1, .layout = LayoutNeed::kFollow},
    .examples = BiasAddGradExamples,
};

ValueId BiasAdd(Builder& b, ValueId x, ValueId bias, int64_t axis) {
  return b.Add1(kBiasAdd, Axis(axis), {x, bias});
}

std::vector<const OpDef*> BiasAddRows() { return {&kBiasAdd, &kBiasAddGrad}; }

}  // namespace capstan
