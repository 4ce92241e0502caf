#include "ops/conv2d/conv2d.h"

#include <algorithm>

#include "engine/base/status.h"
#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status CheckImage(const char* name, const TensorType& type) {
  if (type.ndim() != 4) {
    return InvalidArgument("{} has {} dimensions; wanted 4", name, type.ndim());
  }
  if (type.count() == 0) return InvalidArgument("{} has no elements", name);
  return absl::OkStatus();
}

// Height and width from an attribute.
absl::Status CheckSize(const char* name, const std::vector<int64_t>& size) {
  if (size.size() == 2 && size[0] > 0 && size[1] > 0) return absl::OkStatus();
  return InvalidArgument("{} must be two positive numbers, height and width", name);
}

// x [n,c,h,w] and w [o,i,kh,kw] must fit; returns the size of y.
absl::StatusOr<std::array<int64_t, 2>> CheckConv(const Conv2dAttrs& attrs, const Shape& x,
                                                 const Shape& w) {
  if (attrs.groups < 1 || x[1] % attrs.groups != 0 || w[0] % attrs.groups != 0) {
    return InvalidArgument("{} input and {} output channels do not divide into {} groups", x[1],
                           w[0], attrs.groups);
  }
  if (w[1] * attrs.groups != x[1]) {
    return InvalidArgument("the image has {} channels, the filter wants {}{}", x[1],
                           w[1] * attrs.groups,
                           attrs.groups > 1 ? fmt::format(" ({} groups)", attrs.groups) : "");
  }
  ASSIGN_OR_RETURN(const Window window, ConvWindow(attrs, w[2], w[3]));
  return OutputSize(window, x[2], x[3], /*ceil_mode=*/false);
}

absl::Status InferConv2d(OpCall& call) {
  RETURN_IF_ERROR(CheckImage("x", call.In(0)));
  RETURN_IF_ERROR(CheckImage("w", call.In(1)));
  const Shape &x = call.In(0).shape, &w = call.In(1).shape;
  ASSIGN_OR_RETURN(const auto size, CheckConv(call.Attrs<Conv2dAttrs>(), x, w));
  call.outputs = {{call.In(0).dtype, {x[0], w[0], size[0], size[1]}}};
  return absl::OkStatus();
}

// The convolution of x and w must give a y of dy's shape.
absl::Status CheckGrad(const Conv2dAttrs& attrs, const Shape& x, const Shape& w, const Shape& dy) {
  ASSIGN_OR_RETURN(const auto size, CheckConv(attrs, x, w));
  const Shape y = {x[0], w[0], size[0], size[1]};
  return y == dy
             ? absl::OkStatus()
             : InvalidArgument("dy is {}, the convolution gives {}", dy.ToString(), y.ToString());
}

absl::Status InferInputGrad(OpCall& call) {
  RETURN_IF_ERROR(CheckImage("dy", call.In(0)));
  RETURN_IF_ERROR(CheckImage("w", call.In(1)));
  const auto& attrs = call.Attrs<Conv2dInputGradAttrs>();
  RETURN_IF_ERROR(CheckSize("input_size", attrs.input_size));
  const Shape &dy = call.In(0).shape, &w = call.In(1).shape;
  const Shape x = {dy[0], w[1] * attrs.groups, attrs.input_size[0], attrs.input_size[1]};
  RETURN_IF_ERROR(CheckGrad(attrs, x, w, dy));
  call.outputs = {{call.In(0).dtype, x}};
  return absl::OkStatus();
}

absl::Status InferWeightGrad(OpCall& call) {
  RETURN_IF_ERROR(CheckImage("x", call.In(0)));
  RETURN_IF_ERROR(CheckImage("dy", call.In(1)));
  const auto& attrs = call.Attrs<Conv2dWeightGradAttrs>();
  RETURN_IF_ERROR(CheckSize("kernel_size", attrs.kernel_size));
  const Shape &x = call.In(0).shape, &dy = call.In(1).shape;
  const Shape w = {dy[1], x[1] / std::max<int64_t>(attrs.groups, 1), attrs.kernel_size[0],
                   attrs.kernel_size[1]};
  RETURN_IF_ERROR(CheckGrad(attrs, x, w, dy));
  call.outputs = {{call.In(0).dtype, w}};
  return absl::OkStatus();
}

// The attributes of a gradient row: the convolution's own and a size.
Conv2dInputGradAttrs InputGradAttrs(const Conv2dAttrs& attrs, const Shape& x) {
  Conv2dInputGradAttrs grad;
  static_cast<Conv2dAttrs&>(grad) = attrs;
  grad.input_size = {x[2], x[3]};
  return grad;
}
Conv2dWeightGradAttrs WeightGradAttrs(const Conv2dAttrs& attrs, const Shape& w) {
  Conv2dWeightGradAttrs grad;
  static_cast<Conv2dAttrs&>(grad) = attrs;
  grad.kernel_size = {w[2], w[3]};
  return grad;
}

void GradOfConv2d(GradContext& g) {
  const auto attrs = g.Attrs<Conv2dAttrs>();
  const ValueId x = g.in(0), w = g.in(1), dy = g.dout(0);
  if (g.needs(0)) {
    const AnyStruct grad = AnyStruct::Of(InputGradAttrs(attrs, g.b().shape(x)));
    g.Set(0, g.b().Add1(kConv2dInputGrad, grad, {dy, w}));
  }
  if (g.needs(1)) {
    const AnyStruct grad = AnyStruct::Of(WeightGradAttrs(attrs, g.b().shape(w)));
    g.Set(1, g.b().Add1(kConv2dWeightGrad, grad, {x, dy}));
  }
}

// Two FLOPs for each product: n o p q i kh kw of them, whichever of the three is computed.
Cost ConvCost(const OpCall& call, const Shape& y, const Shape& w) {
  return {2.0 * static_cast<double>(y.count()) * static_cast<double>(w[1] * w[2] * w[3]),
          ArgumentBytes(call)};
}
Cost Conv2dCost(const OpCall& c) { return ConvCost(c, c.Out(0).shape, c.In(1).shape); }
Cost InputGradCost(const OpCall& c) { return ConvCost(c, c.In(0).shape, c.In(1).shape); }
Cost WeightGradCost(const OpCall& c) { return ConvCost(c, c.In(1).shape, c.Out(0).shape); }

const Conv2dAttrs kStrided = {.stride = {2, 1}, .padding = {1, 1}};
const Conv2dAttrs kGrouped = {.padding = {2, 1}, .dilation = {2, 1}, .groups = 2};
const Conv2dAttrs kDepthwise = {.padding = {1, 1}, .groups = 8};

std::vector<Example> Conv2dExamples() {
  return {{.attrs = AnyStruct::Of(Conv2dAttrs{}),
           .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({4, 3, 1, 1})}},
          {.attrs = AnyStruct::Of(kStrided),
           .inputs = {FloatInput({3, 2, 6, 5}), FloatInput({3, 2, 3, 3})}},
          {.attrs = AnyStruct::Of(kGrouped),
           .inputs = {FloatInput({2, 4, 5, 4}), FloatInput({6, 2, 3, 2})}},
          {.attrs = AnyStruct::Of(kDepthwise),
           .inputs = {FloatInput({1, 8, 4, 4}), FloatInput({8, 1, 3, 3})}},
          {.attrs = AnyStruct::Of(Conv2dAttrs{}),
           .inputs = {FloatInput({1, 3, 4, 4}), FloatInput({4, 2, 1, 1})},
           .error = "the image has 3 channels, the filter wants 2"},
          {.attrs = AnyStruct::Of(Conv2dAttrs{}),
           .inputs = {FloatInput({1, 3, 2, 2}), FloatInput({4, 3, 3, 3})},
           .error = "larger than the image"}};
}

std::vector<Example> InputGradExamples() {
  const AnyStruct plain = AnyStruct::Of(InputGradAttrs({}, {2, 3, 4, 5}));
  return {{.attrs = plain, .inputs = {FloatInput({2, 4, 4, 5}), FloatInput({4, 3, 1, 1})}},
          {.attrs = AnyStruct::Of(InputGradAttrs(kStrided, {3, 2, 6, 5})),
           .inputs = {FloatInput({3, 3, 3, 5}), FloatInput({3, 2, 3, 3})}},
          {.attrs = AnyStruct::Of(InputGradAttrs(kGrouped, {2, 4, 5, 4})),
           .inputs = {FloatInput({2, 6, 5, 5}), FloatInput({6, 2, 3, 2})}},
          {.attrs = AnyStruct::Of(InputGradAttrs(kDepthwise, {1, 8, 4, 4})),
           .inputs = {FloatInput({1, 8, 4, 4}), FloatInput({8, 1, 3, 3})}},
          {.attrs = plain,
           .inputs = {FloatInput({2, 4, 4, 4}), FloatInput({4, 3, 1, 1})},
           .error = "the convolution gives"}};
}

std::vector<Example> WeightGradExamples() {
  const AnyStruct plain = AnyStruct::Of(WeightGradAttrs({}, {4, 3, 1, 1}));
  return {{.attrs = plain, .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 4, 4, 5})}},
          {.attrs = AnyStruct::Of(WeightGradAttrs(kStrided, {3, 2, 3, 3})),
           .inputs = {FloatInput({3, 2, 6, 5}), FloatInput({3, 3, 3, 5})}},
          {.attrs = AnyStruct::Of(WeightGradAttrs(kGrouped, {6, 2, 3, 2})),
           .inputs = {FloatInput({2, 4, 5, 4}), FloatInput({2, 6, 5, 5})}},
          {.attrs = AnyStruct::Of(WeightGradAttrs(kDepthwise, {8, 1, 3, 3})),
           .inputs = {FloatInput({1, 8, 4, 4}), FloatInput({1, 8, 4, 4})}},
          {.attrs = plain,
           .inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 4, 4, 4})},
           .error = "the convolution gives"}};
}

}  // namespace

absl::StatusOr<Window> ConvWindow(const Conv2dAttrs& attrs, int64_t height, int64_t width) {
  return MakeWindow({height, width}, attrs.stride, attrs.padding, attrs.dilation);
}

constinit const OpDef kConv2d = {
    .name = "conv2d",
    .doc = "Convolution: y[n,o,p,q] = sum_iuv x[n,i,p*s+u*d-pad,q*s+v*d-pad] w[o,i,u,v].",
    .inputs = {{"x"}, {"w"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<Conv2dAttrs>(),
    .infer = InferConv2d,
    .grad = GradOfConv2d,
    .axes = {.text = "n (g c) h! w!, (g o) c x! y! -> n (g o) p! q! | groups=g"},
    .cost = Conv2dCost,
    .traits = {.precision = Precision::kCompute16, .linear_in = 0b01, .layout = LayoutNeed::kImage},
    .examples = Conv2dExamples,
};

constinit const OpDef kConv2dInputGrad = {
    .name = "conv2d_input_grad",
    .doc = "Gradient of conv2d for its image: dx = transposed convolution of dy by w.",
    .inputs = {{"dy"}, {"w"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<Conv2dInputGradAttrs>(),
    .infer = InferInputGrad,
    .grad = kNoGrad,
    .axes = {.text = "n (g o) p! q!, (g o) c x! y! -> n (g c) h! w! | groups=g"},
    .cost = InputGradCost,
    .traits = {.precision = Precision::kCompute16, .linear_in = 0b01, .layout = LayoutNeed::kImage},
    .examples = InputGradExamples,
};

constinit const OpDef kConv2dWeightGrad = {
    .name = "conv2d_weight_grad",
    .doc = "Gradient of conv2d for its filter: dw[o,i,u,v] = sum_npq dy[n,o,p,q] x[n,i,...].",
    .inputs = {{"x"}, {"dy"}},
    .outputs = {{"dw"}},
    .attrs = &TypeOf<Conv2dWeightGradAttrs>(),
    .infer = InferWeightGrad,
    .grad = kNoGrad,
    .axes = {.text = "n (g c) h! w!, n (g o) p! q! -> (g o) c x! y! | groups=g"},
    .cost = WeightGradCost,
    .traits = {.precision = Precision::kCompute16, .linear_in = 0b10, .layout = LayoutNeed::kImage},
    .examples = WeightGradExamples,
};

ValueId Conv2d(Builder& b, ValueId x, ValueId w, const Conv2dAttrs& attrs) {
  return b.Add1(kConv2d, AnyStruct::Of(attrs), {x, w});
}

std::vector<const OpDef*> Conv2dRows() { return {&kConv2d, &kConv2dInputGrad, &kConv2dWeightGrad}; }

}  // namespace capstan
