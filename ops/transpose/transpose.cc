#include "ops/transpose/transpose.h"

#include <fmt/format.h>

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferTranspose(OpCall& call) {
  const TensorType& x = call.In(0);
  const std::vector<int64_t>& perm = call.Attrs<TransposeAttrs>().perm;
  if (static_cast<int>(perm.size()) != x.ndim()) {
    return InvalidArgument("perm names {} dimensions, x has {}", perm.size(), x.ndim());
  }
  Shape shape;
  uint32_t seen = 0;
  for (const int64_t d : perm) {
    if (d < 0 || d >= x.ndim() || (seen >> d & 1u) != 0) {
      return InvalidArgument("perm must name each of the dimensions 0 to {} once", x.ndim() - 1);
    }
    seen |= 1u << d;
    shape.Append(x.shape[static_cast<int>(d)]);
  }
  call.outputs = {{x.dtype, shape}};
  return absl::OkStatus();
}

void GradOfTranspose(GradContext& g) {
  const std::vector<int64_t> perm = g.Attrs<TransposeAttrs>().perm;
  std::vector<int64_t> back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) {
    back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  }
  g.Set(0, Transpose(g.b(), g.dout(0), std::move(back)));
}

std::string TransposeAxes(const OpCall& call) {
  std::vector<std::string> in, out;
  for (int d = 0; d < call.In(0).ndim(); ++d) in.push_back(fmt::format("d{}", d));
  for (const int64_t d : call.Attrs<TransposeAttrs>().perm) out.push_back(fmt::format("d{}", d));
  return JoinDims(in) + " -> " + JoinDims(out);
}

Cost TransposeCost(const OpCall& call) { return {0, ArgumentBytes(call)}; }

std::vector<Example> TransposeExamples() {
  const auto by = [](std::vector<int64_t> perm) {
    return AnyStruct::Of(TransposeAttrs{.perm = std::move(perm)});
  };
  return {
      {.attrs = by({0, 3, 1, 2}), .inputs = {FloatInput({2, 3, 4, 5})}},
      {.attrs = by({1, 0}), .inputs = {FloatInput({3, 7})}},
      {.attrs = by({2, 0, 1}), .inputs = {FloatInput({1, 4, 3})}},
      {.attrs = by({0}), .inputs = {FloatInput({6})}},
      {.attrs = by({0, 0}), .inputs = {FloatInput({3, 7})}, .error = "each of the dimensions"},
      {.attrs = by({1, 0}),
       .inputs = {FloatInput({3, 7, 2})},
       .error = "perm names 2 dimensions, x has 3"},
  };
}

}  // namespace

constinit const OpDef kTranspose = {
    .name = "transpose",
    .doc = "Exchanges dimensions: y[i[perm[0]], i[perm[1]], ...] = x[i[0], i[1], ...].",
    .inputs = {{"x", DTypeClass::kAny}},
    .outputs = {{"y", DTypeClass::kAny}},
    .attrs = &TypeOf<TransposeAttrs>(),
    .infer = InferTranspose,
    .grad = GradOfTranspose,
    .axes = {.fn = TransposeAxes},
    .cost = TransposeCost,
    .traits = {.linear_in = 0b1},
    .examples = TransposeExamples,
};

ValueId Transpose(Builder& b, ValueId x, std::vector<int64_t> perm) {
  return b.Add1(kTranspose, AnyStruct::Of(TransposeAttrs{std::move(perm)}), {x});
}

std::vector<const OpDef*> TransposeRows() { return {&kTranspose}; }

}  // namespace capstan
