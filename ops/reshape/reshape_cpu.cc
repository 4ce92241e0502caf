// Reference kernel: copies in logical order, for types that are not row-major in memory.
#include "engine/kernel/strided.h"
#include "ops/reshape/reshape.h"
#include "ops/reshape/words.h"

namespace capstan {
namespace {

// The index after `index` in row-major order.
void Advance(Index* index, const Shape& shape) {
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    if (++(*index)[static_cast<size_t>(d)] < shape[d]) return;
    (*index)[static_cast<size_t>(d)] = 0;
  }
}

void ReshapeKernel(KernelContext&, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct&) {
  ForWord(inputs[0].type.dtype, [&](auto word) {
    using W = decltype(word);
    const Strided<const W> x(AsWords(inputs[0]));
    const Strided<W> y(AsWords(outputs[0]));
    Index from{};
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
      y(i) = x(from);
      Advance(&from, inputs[0].type.shape);
    });
  });
}

}  // namespace

std::vector<KernelRow> ReshapeReferenceKernels() {
  return {{.op = "reshape", .dtypes = kMovableTypes, .fn = ReshapeKernel}};
}

}  // namespace capstan
