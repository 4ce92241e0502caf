#include "ops/matmul/matmul.h"

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferMatMul(OpCall& call) {
  const TensorType &a = call.In(0), &b = call.In(1);
  const auto& attrs = call.Attrs<MatMulAttrs>();
  if (a.dtype != b.dtype) return InvalidArgument("a and b need the same element type");
  if (a.ndim() < 2 || a.ndim() != b.ndim()) {
    return InvalidArgument("a and b need equally many dimensions, two at least");
  }
  Shape out;
  for (int d = 0; d < a.ndim() - 2; ++d) {
    if (a.shape[d] != b.shape[d]) {
      return InvalidArgument("batch dimension {} is {} in a but {} in b", d, a.shape[d],
                             b.shape[d]);
    }
    out.Append(a.shape[d]);
  }
  const int row = a.ndim() - 2, column = a.ndim() - 1;
  const int64_t k_of_b = b.shape[attrs.transpose_b ? column : row];
  const MatMulSizes sizes = SizesOf(attrs, a.shape, b.shape);
  if (sizes.k != k_of_b) {
    return InvalidArgument("the inner sizes differ: {} in a, {} in b", sizes.k, k_of_b);
  }
  if (a.count() == 0 || b.count() == 0) return InvalidArgument("a and b must not be empty");
  out.Append(sizes.m);
  out.Append(sizes.n);
  call.outputs = {{a.dtype, out}};
  return absl::OkStatus();
}

// With a' = op(a) and b' = op(b): da' = dy·b'ᵀ and db' = a'ᵀ·dy; a transposed argument wants the
// transpose of that.
void GradOfMatMul(GradContext& g) {
  const MatMulAttrs attrs = g.Attrs<MatMulAttrs>();
  const bool ta = attrs.transpose_a, tb = attrs.transpose_b;
  const ValueId a = g.in(0), b = g.in(1), dy = g.dout(0);
  if (g.needs(0)) {
    g.Set(0, ta ? MatMul(g.b(), b, dy, {.transpose_a = tb, .transpose_b = true})
                : MatMul(g.b(), dy, b, {.transpose_b = !tb}));
  }
  if (g.needs(1)) {
    g.Set(1, tb ? MatMul(g.b(), dy, a, {.transpose_a = true, .transpose_b = ta})
                : MatMul(g.b(), a, dy, {.transpose_a = !ta}));
  }
}

std::string MatMulAxes(const OpCall& call) {
  const auto& attrs = call.Attrs<MatMulAttrs>();
  return std::string(attrs.transpose_a ? "b* k m, " : "b* m k, ") +
         (attrs.transpose_b ? "b* n k" : "b* k n") + " -> b* m n";
}

Cost MatMulCost(const OpCall& call) {
  const MatMulSizes s = SizesOf(call.Attrs<MatMulAttrs>(), call.In(0).shape, call.In(1).shape);
  const double products = double(s.batch) * double(s.m) * double(s.n) * double(s.k);
  return {2.0 * products, ArgumentBytes(call)};
}

std::vector<Example> MatMulExamples() {
  const auto attrs = [](bool ta, bool tb) {
    return AnyStruct::Of(MatMulAttrs{.transpose_a = ta, .transpose_b = tb});
  };
  return {
      {.attrs = attrs(false, false), .inputs = {FloatInput({5, 7}), FloatInput({7, 4})}},
      {.attrs = attrs(true, false), .inputs = {FloatInput({7, 5}), FloatInput({7, 4})}},
      {.attrs = attrs(false, true), .inputs = {FloatInput({3, 5, 7}), FloatInput({3, 4, 7})}},
      {.attrs = attrs(true, true), .inputs = {FloatInput({2, 3, 6, 1}), FloatInput({2, 3, 5, 6})}},
      {.attrs = attrs(false, false),
       .inputs = {FloatInput({5, 7}), FloatInput({6, 4})},
       .error = "the inner sizes differ: 7 in a, 6 in b"},
      {.attrs = attrs(false, false),
       .inputs = {FloatInput({2, 5, 7}), FloatInput({7, 4})},
       .error = "equally many dimensions"},
  };
}

}  // namespace

constinit const OpDef kMatMul = {
    .name = "matmul",
    .doc = "Matrix product of the last two dimensions: y[i,j] = sum_k a[i,k] * b[k,j].",
    .inputs = {{"a"}, {"b"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<MatMulAttrs>(),
    .infer = InferMatMul,
    .grad = GradOfMatMul,
    .axes = {.fn = MatMulAxes},
    .cost = MatMulCost,
    .traits = {.precision = Precision::kCompute16, .linear_in = 0b1},
    .examples = MatMulExamples,
};

MatMulSizes SizesOf(const MatMulAttrs& attrs, const Shape& a, const Shape& b) {
  const int row = a.ndim() - 2, column = a.ndim() - 1;
  MatMulSizes s;
  for (int d = 0; d < row; ++d) s.batch *= a[d];
  s.m = a[attrs.transpose_a ? column : row];
  s.k = a[attrs.transpose_a ? row : column];
  s.n = b[attrs.transpose_b ? row : column];
  return s;
}

ValueId MatMul(Builder& b, ValueId x, ValueId y, MatMulAttrs attrs) {
  return b.Add1(kMatMul, AnyStruct::Of(attrs), {x, y});
}

std::vector<const OpDef*> MatmulRows() { return {&kMatMul}; }

}  // namespace capstan
