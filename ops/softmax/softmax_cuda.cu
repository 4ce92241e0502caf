// CUDA kernels.
#include "ops/cuda/softmax.cuh"
#include "ops/softmax/softmax.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Grid: any; a warp for each row. Memory is read once and written once, where a row fits the cache.
template <typename T>
__global__ void SoftmaxRows(int64_t rows, int64_t classes, const T* x, T* y) {
  ForEachRowOnGrid(rows, [&](int64_t row) {
    const T* from = x + row * classes;
    T* to = y + row * classes;
    const auto parts = SoftmaxPartsOf(from, classes);
    for (int64_t k = threadIdx.x % kWarp; k < classes; k += kWarp) {
      to[k] = Store<T>(exp(Load(from[k]) - parts.greatest) / parts.sum);
    }
  });
}

// Grid: any; a warp for each row.
template <typename T>
__global__ void SoftmaxGradRows(int64_t rows, int64_t classes, const T* y, const T* dy, T* dx) {
  ForEachRowOnGrid(rows, [&](int64_t row) {
    const int64_t begin = row * classes;
    Wide<T> dot = 0;
    for (int64_t k = threadIdx.x % kWarp; k < classes; k += kWarp) {
      dot += Load(y[begin + k]) * Load(dy[begin + k]);
    }
    dot = WarpSum(dot);
    for (int64_t k = threadIdx.x % kWarp; k < classes; k += kWarp) {
      dx[begin + k] = Store<T>(Load(y[begin + k]) * (Load(dy[begin + k]) - dot));
    }
  });
}

struct Rows {
  int64_t count, classes;

  explicit Rows(const Shape& shape)
      : count(shape.count() / shape[shape.ndim() - 1]), classes(shape[shape.ndim() - 1]) {}
  unsigned blocks() const { return BlocksFor(count * kWarp); }
};

void SoftmaxKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const Rows rows(inputs[0].type.shape);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, rows.blocks(), kBlock, SoftmaxRows<T>, rows.count, rows.classes,
           CudaData<const T>(inputs[0]), CudaData<T>(outputs[0]));
  });
}

void SoftmaxGradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const Rows rows(inputs[0].type.shape);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, rows.blocks(), kBlock, SoftmaxGradRows<T>, rows.count, rows.classes,
           CudaData<const T>(inputs[0]), CudaData<const T>(inputs[1]), CudaData<T>(outputs[0]));
  });
}

// Rows lie together in memory.
bool IsPlain(const OpCall& call) {
  const auto plain = [](const TensorType& type) {
    return SameOrder(type, TensorType{type.dtype, type.shape});
  };
  return std::ranges::all_of(call.inputs,
                             [&](const auto& in) { return !in.has_value() || plain(*in); }) &&
         plain(call.Out(0));
}

}  // namespace

std::vector<KernelRow> SoftmaxCudaKernels() {
  KernelRow forward = CudaRow("softmax", SoftmaxKernel);
  KernelRow backward = CudaRow("softmax_grad", SoftmaxGradKernel);
  forward.supports = backward.supports = IsPlain;
  return {forward, backward};
}

}  // namespace capstan
