#include "ops/max_pool/max_pool.h"

#include "engine/base/status.h"
#include "engine/ir/grad.h"

namespace capstan {
namespace {

// Four bytes an output: the winner's place in its plane.
TensorType SavedType(const Shape& y) { return {DType::kOpaque, {y.count() * 4}}; }

absl::Status InferMaxPool(OpCall& call) {
  ASSIGN_OR_RETURN(const Shape y, PooledShape(call.Attrs<PoolAttrs>(), call.In(0).shape));
  call.outputs = {{call.In(0).dtype, y}, SavedType(y)};
  return absl::OkStatus();
}

absl::Status InferMaxPoolGrad(OpCall& call) {
  ASSIGN_OR_RETURN(const Shape x, PoolGradShape(call.Attrs<MaxPoolGradAttrs>(), call.In(0).shape));
  call.outputs = {{call.In(0).dtype, x}};
  return absl::OkStatus();
}

MaxPoolGradAttrs GradAttrs(const PoolAttrs& attrs, const Shape& x) {
  MaxPoolGradAttrs grad;
  static_cast<PoolAttrs&>(grad) = attrs;
  grad.input_size = {x[2], x[3]};
  return grad;
}

void GradOfMaxPool(GradContext& g) {
  const auto attrs = GradAttrs(g.Attrs<PoolAttrs>(), g.b().shape(g.in(0)));
  g.Set(0, g.b().Add1(kMaxPoolGrad, AnyStruct::Of(attrs), {g.dout(0), g.out(1)}));
}

// One comparison for each pixel of each window.
Cost MaxPoolCost(const OpCall& call) {
  const auto& kernel = call.Attrs<PoolAttrs>().kernel;
  return {static_cast<double>(call.Out(0).count() * kernel[0] * kernel[1]), ArgumentBytes(call)};
}
// One addition for each winner.
Cost MaxPoolGradCost(const OpCall& call) {
  return {static_cast<double>(call.In(0).count()), ArgumentBytes(call)};
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
  // Input 2 only feeds the forward row that makes what was saved.
  return {.attrs = AnyStruct::Of(GradAttrs(forward, x)),
          .inputs = {FloatInput(y), ForwardInput(kMaxPool, AnyStruct::Of(forward), {2}, 1),
                     FloatInput(x, Draw::kDistinct)}};
}

std::vector<Example> MaxPoolGradExamples() {
  return {GradExample(Strided3(), {2, 3, 7, 6}, {2, 3, 4, 3}),
          GradExample(Ceil(), {3, 2, 5, 6}, {3, 2, 3, 3}),
          {.attrs = AnyStruct::Of(GradAttrs({}, {1, 1, 4, 4})),
           .inputs = {FloatInput({1, 1, 3, 2}), {.type = {DType::kOpaque, {24}}}},
           .error = "pooling gives"}};
}

}  // namespace

constinit const OpDef kMaxPool = {
    .name = "max_pool",
    .doc = "Max pooling: y[n,c,p,q] = max of x[n,c,h,w] over the window at (p,q).",
    .inputs = {{"x"}},
    .outputs = {{"y"}, {"saved", DTypeClass::kOpaque}},
    .attrs = &TypeOf<PoolAttrs>(),
    .infer = InferMaxPool,
    .grad = GradOfMaxPool,
    .axes = {.text = "n c h! w! -> n c p! q!, ?"},
    .cost = MaxPoolCost,
    .traits = {.layout = LayoutNeed::kImage},
    .examples = MaxPoolExamples,
};

constinit const OpDef kMaxPoolGrad = {
    .name = "max_pool_grad",
    .doc = "Gradient of max_pool: dx[n,c,h,w] = sum of dy over the windows that (h,w) won.",
    .inputs = {{"dy"}, {"saved", DTypeClass::kOpaque}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<MaxPoolGradAttrs>(),
    .infer = InferMaxPoolGrad,
    .grad = kNoGrad,
    .axes = {.text = "n c p! q!, ? -> n c h! w!"},
    .cost = MaxPoolGradCost,
    .traits = {.linear_in = 0b01, .layout = LayoutNeed::kImage},
    .examples = MaxPoolGradExamples,
};

ValueId MaxPool(Builder& b, ValueId x, const PoolAttrs& attrs) {
  return b.Add(kMaxPool, AnyStruct::Of(attrs), {x})[0];
}

std::vector<const OpDef*> MaxPoolRows() { return {&kMaxPool, &kMaxPoolGrad}; }

}  // namespace capstan
