// Fast kernels over contiguous rows, rows on all threads.
#include <algorithm>
#include <cmath>

#include "ops/softmax/softmax.h"

namespace capstan {
namespace {

constexpr int64_t kGrain = 4096;  // elements

bool RowMajor(const OpCall& call) {
  TensorType plain = call.Out(0);
  plain.format = MemoryFormat::kPlain;
  const bool second = !call.Has(1) || SameOrder(plain, call.In(1));
  return SameOrder(plain, call.In(0)) && SameOrder(plain, call.Out(0)) && second;
}

void SoftmaxRow(const float* x, int64_t classes, float* y) {
  const float greatest = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) {
    y[k] = std::exp(x[k] - greatest);
    sum += double(y[k]);
  }
  const auto factor = static_cast<float>(1.0 / sum);
  for (int64_t k = 0; k < classes; ++k) y[k] *= factor;
}

void SoftmaxGradRow(const float* y, const float* dy, int64_t classes, float* dx) {
  double dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t k = 0; k < classes; ++k) dot += double(y[k]) * double(dy[k]);
  const auto mean = static_cast<float>(dot);
#pragma omp simd
  for (int64_t k = 0; k < classes; ++k) dx[k] = y[k] * (dy[k] - mean);
}

// Calls f(offset of the row's first element, row length) for every row.
template <typename F>
void ForEachRow(const KernelContext& context, const Shape& shape, F&& f) {
  const int64_t length = shape[shape.ndim() - 1];
  ParallelFor(context, shape.count() / length, kGrain / length + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) f(r * length, length);
              });
}

void SoftmaxKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct&) {
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  ForEachRow(context, outputs[0].type.shape,
             [&](int64_t at, int64_t length) { SoftmaxRow(x + at, length, y + at); });
}

void SoftmaxGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  const float *y = inputs[0].Data<float>(), *dy = inputs[1].Data<float>();
  float* dx = outputs[0].Data<float>();
  ForEachRow(context, outputs[0].type.shape,
             [&](int64_t at, int64_t length) { SoftmaxGradRow(y + at, dy + at, length, dx + at); });
}

KernelRow FastRow(const char* op, KernelFn fn) {
  return {.op = op,
          .impl = "fast",
          .priority = 10,
          .dtypes = {DType::kF32},
          .supports = RowMajor,
          .fn = fn};
}

}  // namespace

std::vector<KernelRow> SoftmaxFastKernels() {
  return {FastRow("softmax", SoftmaxKernel), FastRow("softmax_grad", SoftmaxGradKernel)};
}

}  // namespace capstan
