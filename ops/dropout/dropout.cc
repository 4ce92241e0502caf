#include "ops/dropout/dropout.h"

#include <cmath>

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferDropout(OpCall& call) {
  const double rate = call.Attrs<DropoutAttrs>().rate;
  // Written so that a NaN is refused.
  if (!(rate >= 0 && rate < 1)) {
    return InvalidArgument("rate {} must be at least 0 and less than 1", rate);
  }
  return InferLikeInput0(call);
}

// The same attributes, so the same mask.
void GradOfDropout(GradContext& g) { g.Set(0, g.b().Add1(kDropout, g.attrs(), {g.dout(0)})); }

std::vector<Example> DropoutExamples() {
  const auto attrs = [](double rate) {
    return AnyStruct::Of(DropoutAttrs{.rate = rate, .stream = "example"});
  };
  return {
      {.attrs = attrs(0.5), .inputs = {FloatInput({5, 3, 4, 5})}},
      {.attrs = attrs(0.1), .inputs = {FloatInput({67})}},
      {.attrs = attrs(0), .inputs = {FloatInput({2, 3})}},
      {.attrs = attrs(0.9), .inputs = {FloatInput({3, 7, 11})}},
      {.attrs = attrs(1), .inputs = {FloatInput({2, 3})}, .error = "less than 1"},
  };
}

}  // namespace

constinit const OpDef kDropout = {
    .name = "dropout",
    .doc = "Sets elements to zero at random: y = x * mask / (1 - rate).",
    .inputs = {{"x"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<DropoutAttrs>(),
    .infer = InferDropout,
    .grad = GradOfDropout,
    .axes = {.text = "b* -> b*"},
    .cost = ElementwiseCost<2>,
    .traits = {.in_place = {{0, 0}},
               .random = true,
               .linear_in = 0b1,
               .layout = LayoutNeed::kFollow},
    .examples = DropoutExamples,
};

ValueId Dropout(Builder& b, ValueId x, double rate) {
  if (!b.training() || rate == 0) return x;
  return b.Add1(kDropout, AnyStruct::Of(DropoutAttrs{.rate = rate, .stream = b.NewStream()}), {x});
}

DropoutMask::DropoutMask(const KernelContext& context, const DropoutAttrs& attrs,
                         const Shape& shape)
    : stream_(HashText(attrs.stream)),
      threshold_(static_cast<uint32_t>(std::ceil(attrs.rate * 0x1p24))),
      scale_(1 / (1 - attrs.rate)),
      ndim_(shape.ndim()) {
  const bool cut = !context.output_places.empty();
  const Shape& whole = cut ? context.output_places[0].logical : shape;
  strides_ = TensorType{DType::kF32, whole}.Strides();
  // A scalar is one position of one sample.
  per_sample_ = ndim_ == 0 ? 1 : strides_[0];
  int64_t before = 0;
  for (int d = 0; cut && d < ndim_; ++d) {
    before += context.output_places[0].offset[d] * strides_[static_cast<size_t>(d)];
  }
  slice_ = static_cast<uint64_t>(before);
  MoveTo({context.random.key(), context.sample_offset});
}

std::vector<const OpDef*> DropoutRows() { return {&kDropout}; }

}  // namespace capstan
