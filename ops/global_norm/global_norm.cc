#include "ops/global_norm/global_norm.h"

#include <fmt/format.h>

namespace capstan {
namespace {

absl::Status InferSquaredNorm(OpCall& call) {
  if (call.inputs.empty()) return InvalidArgument("at least one tensor is needed");
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    if (!call.Has(i)) return InvalidArgument("tensor {} is absent", i);
    if (call.In(i).dtype != call.In(0).dtype) {
      return InvalidArgument("the tensors need one element type");
    }
  }
  call.outputs = {{call.In(0).dtype, {}}};
  return absl::OkStatus();
}

absl::Status InferClipScale(OpCall& call) {
  const double max_norm = call.Attrs<ClipScaleAttrs>().max_norm;
  if (!(max_norm > 0)) return InvalidArgument("max_norm {} is not positive", max_norm);
  if (call.In(0).ndim() != 0) return InvalidArgument("the squared norm must be a scalar");
  return InferLikeInput0(call);
}

// Every dimension may be split: parts of the sum add up.
// One tensor's elements may be split; of several, splitting one would count the others once a part.
std::string SquaredNormAxes(const OpCall& call) {
  std::string rule;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    std::vector<std::string> dims;
    for (int d = 0; d < call.In(i).ndim(); ++d) {
      dims.push_back(fmt::format("d{}_{}{}", i, d, call.inputs.size() > 1 ? "!" : ""));
    }
    rule += (i > 0 ? ", " : "") + JoinDims(dims);
  }
  return rule + " -> .";
}

Cost SquaredNormCost(const OpCall& call) {
  double count = 0;
  for (const auto& in : call.inputs) count += static_cast<double>(in->count());
  return {2 * count, ArgumentBytes(call)};
}

std::vector<Example> SquaredNormExamples() {
  const AnyStruct none = AnyStruct::Of(NoAttrs{});
  return {
      {.attrs = none, .inputs = {FloatInput({37})}},
      {.attrs = none, .inputs = {FloatInput({5000}), FloatInput({3, 4}), FloatInput({})}},
      {.attrs = none, .inputs = {FloatInput({4096}), FloatInput({2, 3, 4, 5})}},
      {.attrs = none, .inputs = {}, .error = "at least one tensor"},
  };
}

std::vector<Example> ClipScaleExamples() {
  const auto limit = [](double max_norm) { return AnyStruct::Of(ClipScaleAttrs{max_norm}); };
  return {
      {.attrs = limit(0.1), .inputs = {FloatInput({}, Draw::kPositive)}},
      {.attrs = limit(10), .inputs = {FloatInput({}, Draw::kPositive)}},
      {.attrs = limit(1), .inputs = {FloatInput({2}, Draw::kPositive)}, .error = "a scalar"},
      {.attrs = limit(0), .inputs = {FloatInput({})}, .error = "max_norm 0 is not positive"},
  };
}

}  // namespace

constinit const OpDef kSquaredNorm = {
    .name = "squared_norm",
    .doc = "Sum of the squares of all elements of all inputs: y = sum_t sum_i x_t[i]^2.",
    .inputs = {{.name = "x", .variadic = true}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferSquaredNorm,
    .grad = kNoGrad,
    .axes = {.fn = SquaredNormAxes},
    .cost = SquaredNormCost,
    .traits = {.precision = Precision::kKeep32},
    .examples = SquaredNormExamples,
};

constinit const OpDef kClipScale = {
    .name = "clip_scale",
    .doc =
        "Factor that brings a norm under its limit: y = max_norm / max(sqrt(squared_norm), "
        "max_norm).",
    .inputs = {{"squared_norm"}},
    .outputs = {{"scale"}},
    .attrs = &TypeOf<ClipScaleAttrs>(),
    .infer = InferClipScale,
    .grad = kNoGrad,
    .axes = {.text = ". -> ."},
    .cost = ElementwiseCost<3>,
    .traits = {.precision = Precision::kKeep32},
    .examples = ClipScaleExamples,
};

std::vector<const OpDef*> GlobalNormRows() { return {&kSquaredNorm, &kClipScale}; }

}  // namespace capstan
