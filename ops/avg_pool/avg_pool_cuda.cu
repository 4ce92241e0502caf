// CUDA kernels.
#include "ops/avg_pool/avg_pool.h"
#include "ops/cuda/images.cuh"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Grid: any; threads stride over the pixels of y. Neighbouring windows meet in the cache: x is read
// once.
template <typename T, int kSize>
__global__ void PoolMean(AvgWindows windows, DeviceImage<kSize> in, DeviceImage<kSize> out,
                         int64_t threads, const T* x, T* y) {
  ForEachOnGrid(threads, [&](int64_t i) {
    const PixelChannels to = out.Of(i);
    const PixelRange rows = windows.Inside(0, to.h), columns = windows.Inside(1, to.w);
    Wide<T> sums[kSize] = {};
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const auto v = LoadVector<kSize>(x + in.At(to.n, to.c, h, w));
#pragma unroll
        for (int e = 0; e < kSize; ++e) sums[e] += Load(v.at[e]);
      }
    }
    const auto divisor = static_cast<Wide<T>>(windows.Divisor(to.h, to.w));
#pragma unroll
    for (int e = 0; e < kSize; ++e) sums[e] /= divisor;
    StoreVector<kSize>(sums, y + out.At(to));
  });
}

// Grid: any; threads stride over the pixels of dx and gather from the windows that hold them, in
// one order.
template <typename T, int kSize>
__global__ void GatherMean(AvgWindows windows, DeviceImage<kSize> out, DeviceImage<kSize> in,
                           int64_t threads, const T* dy, T* dx) {
  ForEachOnGrid(threads, [&](int64_t i) {
    const PixelChannels to = in.Of(i);
    const PixelRange rows = windows.Seeing(0, to.h, out.height);
    const PixelRange columns = windows.Seeing(1, to.w, out.width);
    Wide<T> sums[kSize] = {};
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      for (int64_t q = columns.begin; q < columns.end; ++q) {
        const auto divisor = static_cast<Wide<T>>(windows.Divisor(p, q));
        const auto v = LoadVector<kSize>(dy + out.At(to.n, to.c, p, q));
#pragma unroll
        for (int e = 0; e < kSize; ++e) sums[e] += Load(v.at[e]) / divisor;
      }
    }
    StoreVector<kSize>(sums, dx + in.At(to));
  });
}

void AvgPoolKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const TensorView &x = inputs[0], &y = outputs[0];
  const AvgWindows windows(any.As<AvgPoolAttrs>(), x.type.shape[2], x.type.shape[3]);
  ForCudaFloat(x.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    ForChannelVectors<T>({x, y}, [&](auto size) {
      constexpr int kSize = decltype(size)::value;
      const DeviceImage<kSize> in(x.type), out(y.type);
      Launch(context, BlocksFor(out.threads()), kBlock, PoolMean<T, kSize>, windows, in, out,
             out.threads(), CudaData<const T>(x), CudaData<T>(y));
    });
  });
}

void AvgPoolGradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const TensorView &dy = inputs[0], &dx = outputs[0];
  const AvgWindows windows(any.As<AvgPoolGradAttrs>(), dx.type.shape[2], dx.type.shape[3]);
  ForCudaFloat(dy.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    ForChannelVectors<T>({dy, dx}, [&](auto size) {
      constexpr int kSize = decltype(size)::value;
      const DeviceImage<kSize> out(dy.type), in(dx.type);
      Launch(context, BlocksFor(in.threads()), kBlock, GatherMean<T, kSize>, windows, out, in,
             in.threads(), CudaData<const T>(dy), CudaData<T>(dx));
    });
  });
}

}  // namespace

std::vector<KernelRow> AvgPoolCudaKernels() {
  return {CudaRow("avg_pool", AvgPoolKernel), CudaRow("avg_pool_grad", AvgPoolGradKernel)};
}

}  // namespace capstan
