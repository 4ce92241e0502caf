// Reference kernel: plain loops in logical order.
#include "engine/kernel/strided.h"
#include "ops/reshape/words.h"
#include "ops/transpose/transpose.h"

namespace capstan {
namespace {

void TransposeKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const std::vector<int64_t>& perm = any.As<TransposeAttrs>().perm;
  ForWord(inputs[0].type.dtype, [&](auto word) {
    using W = decltype(word);
    const Strided<const W> x(AsWords(inputs[0]));
    const Strided<W> y(AsWords(outputs[0]));
    ForEachIndex(outputs[0].type.shape, [&](const Index& to) {
      Index from{};
      for (size_t d = 0; d < perm.size(); ++d) from[static_cast<size_t>(perm[d])] = to[d];
      y(to) = x(from);
    });
  });
}

}  // namespace

std::vector<KernelRow> TransposeReferenceKernels() {
  return {{.op = "transpose", .dtypes = kMovableTypes, .fn = TransposeKernel}};
}

}  // namespace capstan
