#include "ops/avg_pool/avg_pool.h"

#include "engine/base/status.h"
#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferAvgPool(OpCall& call) {
  ASSIGN_OR_RETURN(const Shape y, PooledShape(call.Attrs<AvgPoolAttrs>(), call.In(0).shape));
  call.outputs = {{call.In(0).dtype, y}};
  return absl::OkStatus();
}

absl::Status InferAvgPoolGrad(OpCall& call) {
  ASSIGN_OR_RETURN(const Shape x, PoolGradShape(call.Attrs<AvgPoolGradAttrs>(), call.In(0).shape));
  call.outputs = {{call.In(0).dtype, x}};
  return absl::OkStatus();
}

AvgPoolGradAttrs GradAttrs(const AvgPoolAttrs& attrs, const Shape& x) {
  AvgPoolGradAttrs grad;
  static_cast<AvgPoolAttrs&>(grad) = attrs;
  grad.input_size = {x[2], x[3]};
  return grad;
}

void GradOfAvgPool(GradContext& g) {
  const auto attrs = GradAttrs(g.Attrs<AvgPoolAttrs>(), g.b().shape(g.in(0)));
  g.Set(0, g.b().Add1(kAvgPoolGrad, AnyStruct::Of(attrs), {g.dout(0)}));
}

// One addition for each pixel of each window.
Cost PoolCost(const OpCall& call, const AvgPoolAttrs& attrs, const Shape& y) {
  return {static_cast<double>(y.count()) * static_cast<double>(attrs.kernel[0] * attrs.kernel[1]),
          ArgumentBytes(call)};
}
Cost AvgPoolCost(const OpCall& call) {
  return PoolCost(call, call.Attrs<AvgPoolAttrs>(), call.Out(0).shape);
}
Cost AvgPoolGradCost(const OpCall& call) {
  return PoolCost(call, call.Attrs<AvgPoolGradAttrs>(), call.In(0).shape);
}

const AvgPoolAttrs kPadded = {.kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}};
// The last windows reach beyond the padded image.
const AvgPoolAttrs kCounted = {
    .kernel = {2, 3}, .stride = {2, 2}, .padding = {0, 1}, .ceil_mode = true, .exclusive = false};

std::vector<Example> AvgPoolExamples() {
  return {{.attrs = AnyStruct::Of(AvgPoolAttrs{}), .inputs = {FloatInput({2, 9, 4, 6})}},
          {.attrs = AnyStruct::Of(kPadded), .inputs = {FloatInput({3, 2, 5, 4})}},
          {.attrs = AnyStruct::Of(kCounted), .inputs = {FloatInput({2, 3, 5, 6})}},
          {.attrs = AnyStruct::Of(AvgPoolAttrs{.kernel = {1, 1}, .stride = {1, 1}}),
           .inputs = {FloatInput({1, 1, 1, 1})}},
          {.attrs = AnyStruct::Of(AvgPoolAttrs{.kernel = {4, 4}}),
           .inputs = {FloatInput({1, 1, 3, 3})},
           .error = "larger than the image"},
          {.attrs = AnyStruct::Of(AvgPoolAttrs{.padding = {2, 2}}),
           .inputs = {FloatInput({1, 1, 3, 3})},
           .error = "more than half"}};
}

std::vector<Example> AvgPoolGradExamples() {
  return {
      {.attrs = AnyStruct::Of(GradAttrs({}, {2, 9, 4, 6})), .inputs = {FloatInput({2, 9, 2, 3})}},
      {.attrs = AnyStruct::Of(GradAttrs(kPadded, {3, 2, 5, 4})),
       .inputs = {FloatInput({3, 2, 3, 4})}},
      {.attrs = AnyStruct::Of(GradAttrs(kCounted, {2, 3, 5, 6})),
       .inputs = {FloatInput({2, 3, 3, 4})}},
      {.attrs = AnyStruct::Of(GradAttrs({}, {2, 3, 4, 4})),
       .inputs = {FloatInput({2, 3, 2, 1})},
       .error = "pooling gives"}};
}

}  // namespace

AvgWindows::AvgWindows(const AvgPoolAttrs& attrs, int64_t height, int64_t width)
    : size_{height, width}, exclusive_(attrs.exclusive) {
  const absl::StatusOr<Window> window = PoolWindow(attrs);
  CHECK_OK(window);
  window_ = *window;
}

constinit const OpDef kAvgPool = {
    .name = "avg_pool",
    .doc = "Average pooling: y[n,c,p,q] = mean of x[n,c,h,w] over the window at (p,q).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<AvgPoolAttrs>(),
    .infer = InferAvgPool,
    .grad = GradOfAvgPool,
    .axes = {.text = "n c h! w! -> n c p! q!"},
    .cost = AvgPoolCost,
    .traits = {.linear_in = 0b1, .layout = LayoutNeed::kImage},
    .examples = AvgPoolExamples,
};

constinit const OpDef kAvgPoolGrad = {
    .name = "avg_pool_grad",
    .doc =
        "Gradient of avg_pool: dx[n,c,h,w] = sum over the windows that hold (h,w) of dy / their "
        "divisor.",
    .inputs = {{"dy"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<AvgPoolGradAttrs>(),
    .infer = InferAvgPoolGrad,
    .grad = kNoGrad,
    .axes = {.text = "n c p! q! -> n c h! w!"},
    .cost = AvgPoolGradCost,
    .traits = {.linear_in = 0b1, .layout = LayoutNeed::kImage},
    .examples = AvgPoolGradExamples,
};

ValueId AvgPool(Builder& b, ValueId x, const AvgPoolAttrs& attrs) {
  return b.Add1(kAvgPool, AnyStruct::Of(attrs), {x});
}

std::vector<const OpDef*> AvgPoolRows() { return {&kAvgPool, &kAvgPoolGrad}; }

}  // namespace capstan
