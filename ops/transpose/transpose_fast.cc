// Fast kernel: whole rows of the result at a time, on all threads.
#include <algorithm>

#include "engine/kernel/strided.h"
#include "ops/reshape/words.h"
#include "ops/transpose/transpose.h"

namespace capstan {
namespace {

constexpr int64_t kGrain = 16384;  // elements

bool PlainResult(const OpCall& call) {
  TensorType plain = call.Out(0);
  plain.format = MemoryFormat::kPlain;
  return call.Out(0).ndim() > 0 && SameOrder(plain, call.Out(0));
}

// Distances in x between neighbours along each dimension of y.
std::array<int64_t, Shape::kMaxNdim> StridesInInput(const TensorType& x,
                                                    const std::vector<int64_t>& perm) {
  const auto strides = x.Strides();
  std::array<int64_t, Shape::kMaxNdim> result{};
  for (size_t d = 0; d < perm.size(); ++d) result[d] = strides[static_cast<size_t>(perm[d])];
  return result;
}

// Where row `row` of y (its last dimension) begins in x.
int64_t RowBegin(const Shape& y, const std::array<int64_t, Shape::kMaxNdim>& strides, int64_t row) {
  int64_t at = 0;
  for (int d = y.ndim() - 2; d >= 0; --d) {
    at += row % y[d] * strides[static_cast<size_t>(d)];
    row /= y[d];
  }
  return at;
}

template <typename W>
void CopyRow(const W* from, int64_t stride, int64_t length, W* to) {
  if (stride == 1) {
    std::copy(from, from + length, to);
    return;
  }
  for (int64_t i = 0; i < length; ++i) to[i] = from[i * stride];
}

void TransposeKernel(KernelContext& context, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const Shape& shape = outputs[0].type.shape;
  const int64_t length = shape[shape.ndim() - 1], rows = shape.count() / length;
  const auto strides = StridesInInput(inputs[0].type, any.As<TransposeAttrs>().perm);
  const int64_t stride = strides[static_cast<size_t>(shape.ndim() - 1)];
  ForWord(inputs[0].type.dtype, [&](auto word) {
    using W = decltype(word);
    const W* x = AsWords(inputs[0]).Data<W>();
    W* y = AsWords(outputs[0]).Data<W>();
    ParallelFor(context, rows, kGrain / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        CopyRow(x + RowBegin(shape, strides, r), stride, length, y + r * length);
      }
    });
  });
}

}  // namespace

std::vector<KernelRow> TransposeFastKernels() {
  return {{.op = "transpose",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = PlainResult,
           .fn = TransposeKernel}};
}

}  // namespace capstan
