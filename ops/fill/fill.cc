#include "ops/fill/fill.h"

#include <cmath>
#include <limits>

#include "engine/ir/grad.h"

namespace capstan {
namespace {

// Whether an element type can hold the value; floats round.
bool Holds(DType dtype, double value) {
  if (IsFloat(dtype)) return true;
  if (value != std::trunc(value)) return false;
  switch (dtype) {
    case DType::kI64:
      return value >= -0x1p63 && value < 0x1p63;
    case DType::kI32:
      return value >= -0x1p31 && value < 0x1p31;
    case DType::kU8:
      return value >= 0 && value <= 255;
    default:
      return value == 0 || value == 1;
  }
}

absl::Status InferFill(OpCall& call) {
  const auto& attrs = call.Attrs<FillAttrs>();
  if (attrs.dtype == DType::kOpaque) return InvalidArgument("opaque bytes have no value");
  if (attrs.shape.size() > static_cast<size_t>(Shape::kMaxNdim)) {
    return InvalidArgument("{} dimensions, at most {} are possible", attrs.shape.size(),
                           int{Shape::kMaxNdim});
  }
  for (const int64_t size : attrs.shape) {
    if (size < 0) return InvalidArgument("a size is negative: {}", size);
  }
  if (!Holds(attrs.dtype, attrs.value)) {
    return InvalidArgument("{} cannot hold {}", NameOf(attrs.dtype), attrs.value);
  }
  call.outputs = {{attrs.dtype, Shape(attrs.shape)}};
  return absl::OkStatus();
}

std::string FillAxes(const OpCall& call) {
  std::vector<std::string> dims;
  for (int d = 0; d < call.Out(0).ndim(); ++d) dims.push_back("d" + std::to_string(d));
  const std::string all = JoinDims(dims);
  return dims.empty() ? "-> ." : "-> " + all + " | shape=[" + all + "]";
}

std::vector<Example> FillExamples() {
  const auto attrs = [](FillAttrs a) { return AnyStruct::Of(std::move(a)); };
  return {
      {.attrs = attrs({.shape = {2, 3, 4, 5}, .value = 0.25}), .inputs = {}},
      {.attrs = attrs({.value = -1}), .inputs = {}},
      {.attrs = attrs({.dtype = DType::kI64, .shape = {7}, .value = -3}), .inputs = {}},
      {.attrs = attrs({.dtype = DType::kU8, .shape = {3}, .value = 256}),
       .inputs = {},
       .error = "u8 cannot hold 256"},
      {.attrs = attrs({.dtype = DType::kI32, .value = 0.5}),
       .inputs = {},
       .error = "i32 cannot hold 0.5"},
  };
}

}  // namespace

constinit const OpDef kFill = {
    .name = "fill",
    .doc = "A constant tensor: y = value everywhere.",
    .inputs = {},
    .outputs = {{"y", DTypeClass::kAny}},
    .attrs = &TypeOf<FillAttrs>(),
    .infer = InferFill,
    .grad = kNoGrad,
    .axes = {.fn = FillAxes},
    .cost = ElementwiseCost<0>,
    .traits = {.layout = LayoutNeed::kFollow},
    .examples = FillExamples,
};

std::vector<const OpDef*> FillRows() { return {&kFill}; }

}  // namespace capstan
