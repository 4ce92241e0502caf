#include "ops/global_avg_pool/global_avg_pool.h"

#include "engine/base/status.h"
#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferPool(OpCall& call) {
  const Shape& x = call.In(0).shape;
  if (x.ndim() != 4) return InvalidArgument("x has {} dimensions; wanted 4", x.ndim());
  if (x[2] * x[3] == 0) return InvalidArgument("an image without pixels has no mean");
  call.outputs = {{call.In(0).dtype, {x[0], x[1], 1, 1}}};
  return absl::OkStatus();
}

absl::Status InferGrad(OpCall& call) {
  const auto& size = call.Attrs<GlobalAvgPoolGradAttrs>().input_size;
  const Shape& dy = call.In(0).shape;
  if (dy.ndim() != 4 || dy[2] != 1 || dy[3] != 1) {
    return InvalidArgument("dy is {}; wanted [n,c,1,1]", dy.ToString());
  }
  if (size.size() != 2) return InvalidArgument("input_size: wanted height and width");
  call.outputs = {{call.In(0).dtype, {dy[0], dy[1], size[0], size[1]}}};
  return absl::OkStatus();
}

void GradOfPool(GradContext& g) {
  const Shape& x = g.b().shape(g.in(0));
  const GlobalAvgPoolGradAttrs attrs{.input_size = {x[2], x[3]}};
  g.Set(0, g.b().Add1(kGlobalAvgPoolGrad, AnyStruct::Of(attrs), {g.dout(0)}));
}

std::vector<Example> PoolExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {{.attrs = none, .inputs = {FloatInput({3, 5, 4, 3})}},
          {.attrs = none, .inputs = {FloatInput({1, 1, 1, 1})}},
          {.attrs = none, .inputs = {FloatInput({3, 5, 4})}, .error = "wanted 4"}};
}

std::vector<Example> GradExamples() {
  return {{.attrs = AnyStruct::Of(GlobalAvgPoolGradAttrs{.input_size = {4, 3}}),
           .inputs = {FloatInput({3, 5, 1, 1})}},
          {.attrs = AnyStruct::Of(GlobalAvgPoolGradAttrs{}), .inputs = {FloatInput({2, 9, 1, 1})}},
          {.attrs = AnyStruct::Of(GlobalAvgPoolGradAttrs{}),
           .inputs = {FloatInput({3, 5, 2, 1})},
           .error = "wanted [n,c,1,1]"}};
}

}  // namespace

constinit const OpDef kGlobalAvgPool = {
    .name = "global_avg_pool",
    .doc = "Mean over the image: y[n,c,0,0] = sum_hw x[n,c,h,w] / (h w).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferPool,
    .grad = GradOfPool,
    .axes = {.text = "n c h! w! -> n c 1 1"},
    .cost = ElementwiseCost<1>,
    .traits = {.linear_in = 1, .layout = LayoutNeed::kImage},
    .examples = PoolExamples,
};

constinit const OpDef kGlobalAvgPoolGrad = {
    .name = "global_avg_pool_grad",
    .doc = "Gradient of global_avg_pool: dx[n,c,h,w] = dy[n,c,0,0] / (h w).",
    .inputs = {{"dy"}},
    .outputs = {{"dx"}},
    .attrs = &TypeOf<GlobalAvgPoolGradAttrs>(),
    .infer = InferGrad,
    .grad = kNoGrad,
    .axes = {.text = "n c 1 1 -> n c h! w!"},
    .cost = ElementwiseCost<1>,
    .traits = {.linear_in = 1, .layout = LayoutNeed::kImage},
    .examples = GradExamples,
};

ValueId GlobalAvgPool(Builder& b, ValueId x) { return b.Add1(kGlobalAvgPool, {}, {x}); }

std::vector<const OpDef*> GlobalAvgPoolRows() { return {&kGlobalAvgPool, &kGlobalAvgPoolGrad}; }

}  // namespace capstan
