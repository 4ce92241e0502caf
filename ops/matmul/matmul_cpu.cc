// Reference kernel: plain loops in logical order.
#include <utility>

#include "engine/kernel/strided.h"
#include "ops/matmul/matmul.h"

namespace capstan {
namespace {

// The index with the last two subscripts (i, j), exchanged where the matrix is stored transposed.
Index MatrixIndex(Index batch, int ndim, int64_t i, int64_t j, bool transposed) {
  if (transposed) std::swap(i, j);
  batch[static_cast<size_t>(ndim - 2)] = i;
  batch[static_cast<size_t>(ndim - 1)] = j;
  return batch;
}

void MatMulKernel(KernelContext&, std::span<const TensorView> outputs,
                  std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<MatMulAttrs>();
  const int ndim = outputs[0].type.ndim();
  const int64_t inner = SizesOf(attrs, inputs[0].type.shape, inputs[1].type.shape).k;
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> a(inputs[0]), b(inputs[1]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& at) {
      const int64_t i = at[static_cast<size_t>(ndim - 2)], j = at[static_cast<size_t>(ndim - 1)];
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += double(a(MatrixIndex(at, ndim, i, k, attrs.transpose_a))) *
               double(b(MatrixIndex(at, ndim, k, j, attrs.transpose_b)));
      }
      y(at) = static_cast<T>(sum);
    });
  });
}

}  // namespace

std::vector<KernelRow> MatmulReferenceKernels() { return {{.op = "matmul", .fn = MatMulKernel}}; }

}  // namespace capstan
