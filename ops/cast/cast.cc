#include "ops/cast/cast.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferCast(OpCall& call) {
  const DType dtype = call.Attrs<CastAttrs>().dtype;
  if (dtype == DType::kOpaque) return InvalidArgument("nothing can be cast to opaque bytes");
  call.outputs = {{dtype, call.In(0).shape}};
  return absl::OkStatus();
}

void GradOfCast(GradContext& g) {
  if (!g.needs(0)) return;
  g.Set(0, Cast(g.b(), g.dout(0), g.b().type(g.in(0)).dtype));
}

// Float results have 64 bits here: fewer would drown finite differences in rounding.
std::vector<Example> CastExamples() {
  const auto to = [](DType dtype) { return AnyStruct::Of(CastAttrs{.dtype = dtype}); };
  return {
      {.attrs = to(DType::kF64), .inputs = {FloatInput({2, 3, 4, 5})}},
      {.attrs = to(DType::kF64), .inputs = {FloatInput({})}},
      {.attrs = to(DType::kF32), .inputs = {IndexInput({2, 3, 4, 5}, 256, DType::kU8)}},
      {.attrs = to(DType::kI32), .inputs = {IndexInput({67}, 1000)}},
      {.attrs = to(DType::kI64), .inputs = {IndexInput({5, 7}, 1000, DType::kI32)}},
      {.attrs = to(DType::kOpaque), .inputs = {FloatInput({3})}, .error = "opaque"},
  };
}

}  // namespace

constinit const OpDef kCast = {
    .name = "cast",
    .doc = "The values in another element type: y = dtype(x).",
    .inputs = {{"x", DTypeClass::kAny}},
    .outputs = {{"y", DTypeClass::kAny}},
    .attrs = &TypeOf<CastAttrs>(),
    .infer = InferCast,
    .grad = GradOfCast,
    .axes = {.text = "b* -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.layout = LayoutNeed::kFollow},
    .examples = CastExamples,
};

ValueId Cast(Builder& b, ValueId x, DType dtype) {
  if (!b.ok() || b.type(x).dtype == dtype) return x;
  return b.Add1(kCast, AnyStruct::Of(CastAttrs{.dtype = dtype}), {x});
}

std::vector<const OpDef*> CastRows() { return {&kCast}; }

}  // namespace capstan
