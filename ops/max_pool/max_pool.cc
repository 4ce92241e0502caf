#include "ops/max_pool/max_pool.h"

#include "engine/base/status.h"
#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::StatusOr<Shape> PooledShape(const PoolAttrs& attrs, const Shape& x) {
  if (x.ndim() != 4) return InvalidArgument("x has {} dimensions; wanted 4", x.ndim());
  ASSIGN_OR_RETURN(const Window window, PoolWindow(attrs));
  for (size_t d = 0; d < 2; ++d) {
    if (2 * window.padding[d] > window.kernel[d]) {
      return InvalidArgument("padding {} is more than half of the window {}", window.padding[d],
                             window.kernel[d]);
    }
  }
  ASSIGN_OR_RETURN(const auto size, OutputSize(window, x[2], x[3], attrs.ceil_mode));
  return Shape{x[0], x[1], size[0], size[1]};
}

// Four bytes an output: the winner's place in its plane.
TensorType SavedType(const Shape& y) { return {DType::kOpaque, {y.count() * 4}}; }

absl::Status InferMaxPool(OpCall& call) {
  ASSIGN_OR_RETURN(const Shape y, PooledShape(call.Attrs<PoolAttrs>(), call.In(0).shape));
  call.outputs = {{call.In(0).dtype, y}, SavedType(y)};
  return absl::OkStatus();
}

absl::Status InferMaxPoolGrad(OpCall& call) {
  const auto& attrs = call.Attrs<PoolGradAttrs>();
  const Shape& dy = call.In(0).shape;
  if (dy.ndim() != 4) return InvalidArgument("dy has {} dimensions; wanted 4", dy.ndim());
  if (attrs.input_size.size() != 2) return InvalidArgument("input_size: wanted height and width");
  const Shape x = {dy[0], dy[1], attrs.input_size[0], attrs.input_size[1]};
  ASSIGN_OR_RETURN(const Shape y, PooledShape(attrs, x));
  if (y != dy) return InvalidArgument("dy is {}, pooling gives {}", dy.ToString(), y.ToString());
  call.outputs = {{call.In(0).dtype, x}};
  return absl::OkStatus();
}

void GradOfMaxPool(GradContext& g) {
  PoolGradAttrs attrs;
  static_cast<PoolAttrs&>(attrs) = g.Attrs<PoolAttrs>();
  const Shape& x = g.b().shape(g.in(0));
  attrs.input_size = {x[2], x[3]};
  g.Set(0, g.b().Add1(kMaxPoolGrad, AnyStruct::Of(attrs), {g.dout(0), g.out(1)}));
}

PoolAttrs Strided3() { return {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}; }
PoolAttrs Ceil() { return {.kernel = {2, 3}, .stride = {2, 2}, .ceil_mode = true}; }

std::vector<Example> MaxPoolExamples() {
  return {
      {.attrs = AnyStruct::Of(Strided3()), .inputs = {FloatInput({2, 3, 7, 6}, Draw::kDistinct)}},
      {.attrs = AnyStruct::Of(Ceil()), .inputs = {FloatInput({3, 2, 5, 6}, Draw::kDistinct)}},
      {.attrs = AnyStruct::Of(PoolAttrs{.kernel = {1, 1}, .stride = {1, 1}}),
       .inputs = {FloatInput({1, 1, 1, 1}, Draw::kDistinct)}},
      {.attrs = AnyStruct::Of(PoolAttrs{.kernel = {4, 4}}),
       .inputs = {FloatInput({1, 1, 3, 3})},
       .error = "larger than the image"}};
}

Example GradExample(const PoolAttrs& forward, const Shape& x, const Shape& y) {
  PoolGradAttrs attrs;
  static_cast<PoolAttrs&>(attrs) = forward;
  attrs.input_size = {x[2], x[3]};
  // Input 2 only feeds the forward row that makes what was saved.
  return {.attrs = AnyStruct::Of(attrs),
          .inputs = {FloatInput(y), ForwardInput(kMaxPool, AnyStruct::Of(forward), {2}, 1),
                     FloatInput(x, Draw::kDistinct)}};
}

std::vector<Example> MaxPoolGradExamples() {
  PoolGradAttrs wrong;
  wrong.input_size = {4, 4};
  return {GradExample(Strided3(), {2, 3, 7, 6}, {2, 3, 4, 3}),
          GradExample(Ceil(), {3, 2, 5, 6}, {3, 2, 3, 3}),
          {.attrs = AnyStruct::Of(wrong),
           .inputs = {FloatInput({1, 1, 3, 2}), {.type = {DType::kOpaque, {24}}}},
           .error = "pooling gives"}};
}

}  // namespace

absl::StatusOr<Window> PoolWindow(const PoolAttrs& attrs) {
  return MakeWindow(attrs.kernel, attrs.stride, attrs.padding, {1, 1});
}

constinit const OpDef kMaxPool = {
    .name = "max_pool",
    .doc = "Max pooling: y[n,c,p,q] = max of x[n,c,h,w] over the window at (p,q).",
    .inputs = {{"x"}},
    .outputs = {{"y"}, {"saved", DTypeClass::kOpaque}},
    .attrs = &TypeOf<PoolAttrs>(),
    .infer = InferMaxPool,
    .grad = GradOfMaxPool,
    .axes = {.text = "n c h! w! -> n c p! q!, ?"},
    .cost = ElementwiseCost<1>,
    .traits = {.layout = LayoutNeed::kImage},
    .examples = MaxPoolExamples,
};

constinit const OpDef kMaxPoolGrad = {
    .name = "max_pool_grad",
    .doc = "Gradient of max_pool: dx[n,c,h,w] = sum of dy over the windows that (h,w) won.",
    .inputs = {{"dy"}, {"saved", DTypeClass::kOpaque}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<PoolGradAttrs>(),
    .infer = InferMaxPoolGrad,
    .grad = kNoGrad,
    .axes = {.text = "n c p! q!, ? -> n c h! w!"},
    .cost = ElementwiseCost<1>,
    .traits = {.linear_in = 0b01, .layout = LayoutNeed::kImage},
    .examples = MaxPoolGradExamples,
};

ValueId MaxPool(Builder& b, ValueId x, const PoolAttrs& attrs) {
  return b.Add(kMaxPool, AnyStruct::Of(attrs), {x})[0];
}

std::vector<const OpDef*> MaxPoolRows() { return {&kMaxPool, &kMaxPoolGrad}; }

}  // namespace capstan
