// CUDA kernels.
#include "engine/kernel/flat.h"
#include "ops/bias_add/bias_add.h"
#include "ops/cuda/reduce.cuh"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Where the bias of an element is, by its place in memory: place / stride % size.
struct BiasPlace {
  int64_t stride, size;

  BiasPlace(const TensorType& x, const AnyStruct& attrs) {
    const int axis = BiasAxis(attrs, x.ndim());
    stride = x.Strides()[static_cast<size_t>(axis)];
    size = x.shape[axis];
  }
};

template <typename T>
__global__ void AddBias(int64_t n, BiasPlace place, const T* x, const T* bias, T* y) {
  ForEachOnGrid(n, [&](int64_t i) {
    y[i] = Store<T>(Load(x[i]) + Load(bias[i / place.stride % place.size]));
  });
}

void BiasAddKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& attrs) {
  const int64_t n = outputs[0].type.count();
  ForCudaFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(n), kBlock, AddBias<T>, n, BiasPlace(inputs[0].type, attrs),
           CudaData<const T>(inputs[0]), CudaData<const T>(inputs[1]), CudaData<T>(outputs[0]));
  });
}

// Grid: a block for each element of the bias.
template <typename T>
__global__ void SumSlices(int64_t count, BiasPlace place, const T* dy, T* dbias) {
  __shared__ Wide<T> shared[kWarp];
  const T* slice = dy + blockIdx.x * place.stride;
  Wide<T> sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    sum += Load(slice[i / place.stride * place.stride * place.size + i % place.stride]);
  }
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) dbias[blockIdx.x] = Store<T>(sum);
}

void BiasAddGradKernel(KernelContext& context, Views outputs, Views inputs,
                       const AnyStruct& attrs) {
  const BiasPlace place(inputs[0].type, attrs);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, static_cast<unsigned>(place.size), kBlock, SumSlices<T>,
           inputs[0].type.count() / place.size, place, CudaData<const T>(inputs[0]),
           CudaData<T>(outputs[0]));
  });
}

}  // namespace

std::vector<KernelRow> BiasAddCudaKernels() {
  KernelRow add = CudaRow("bias_add", BiasAddKernel);
  add.supports = InOneOrder;
  return {add, CudaRow("bias_add_grad", BiasAddGradKernel)};
}

}  // namespace capstan
