#include "ops/clip_segments/clip_segments.h"

#include "engine/base/status.h"
#include "ops/sgd/update_row.h"

namespace capstan {
namespace {

absl::Status InferClipSegments(OpCall& call) {
  const auto& attrs = call.Attrs<ClipSegmentsAttrs>();
  const TensorType& g = call.In(0);
  if (g.ndim() != 1) return InvalidArgument("g must be a flat bucket, not {}", g.ToString());
  if (!(attrs.max_norm > 0)) return InvalidArgument("max_norm {} is not positive", attrs.max_norm);
  RETURN_IF_ERROR(CheckSegments(attrs.segment_ends, g.count()));
  return InferLikeInput0(call);
}

std::vector<Example> ClipSegmentsExamples() {
  const auto attrs = [](std::vector<int64_t> ends, double max_norm) {
    return AnyStruct::Of(ClipSegmentsAttrs{std::move(ends), max_norm});
  };
  return {
      {.attrs = attrs({5, 37}, 2), .inputs = {FloatInput({37})}},
      {.attrs = attrs({16, 17, 64}, 100), .inputs = {FloatInput({64})}},
      {.attrs = attrs({1}, 0.01), .inputs = {FloatInput({1})}},
      {.attrs = attrs({20000, 20003}, 3), .inputs = {FloatInput({20003})}},
      {.attrs = attrs({5, 7}, 1),
       .inputs = {FloatInput({8})},
       .error = "segment_ends end at 7, the bucket has 8 elements"},
      {.attrs = attrs({8}, 0), .inputs = {FloatInput({8})}, .error = "is not positive"},
      {.attrs = attrs({8}, 1), .inputs = {FloatInput({2, 4})}, .error = "flat bucket"},
  };
}

}  // namespace

constinit const OpDef kClipSegments = {
    .name = "clip_segments",
    .doc =
        "Clips each tensor of a bucket to a norm of its own: y = g * max_norm / max(|g|, "
        "max_norm).",
    .inputs = {{"g"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<ClipSegmentsAttrs>(),
    .infer = InferClipSegments,
    .grad = kNoGrad,
    .axes = {.text = "n! -> n!"},
    .cost = ElementwiseCost<3>,
    .traits = {.precision = Precision::kKeep32, .in_place = {{0, 0}}},
    .examples = ClipSegmentsExamples,
};

std::vector<const OpDef*> ClipSegmentsRows() { return {&kClipSegments}; }

}  // namespace capstan
