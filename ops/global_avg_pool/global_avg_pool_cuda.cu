// CUDA kernels.
#include "ops/cuda/channels.cuh"
#include "ops/cuda/images.cuh"
#include "ops/global_avg_pool/global_avg_pool.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// The mean of each chunk, which is a sample.
template <typename T>
struct MeanTerm {
  using Element = T;
  static constexpr int kInputs = 1, kSums = 1;
  std::array<const T*, kInputs> in;
  T* y;
  int64_t channels;

  __device__ Wide<T> Center(int64_t, int64_t) const { return 0; }
  static __device__ void Add(Wide<T>, const Wide<T> (&v)[kInputs], Wide<T> (&sums)[kSums]) {
    sums[0] += v[0];
  }
  __device__ void Write(int64_t chunk, int64_t c, Wide<T>, int64_t count,
                        const Wide<T> (&sums)[kSums]) const {
    y[chunk * channels + c] = Store<T>(sums[0] / static_cast<Wide<T>>(count));
  }
};

void PoolKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const TensorView& x = inputs[0];
  ChannelCut cut(x.type, /*axis=*/1, {x.data});
  cut.CutBySample(x.type.shape[0]);
  ForCudaFloat(x.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    SumChannels(context, cut,
                MeanTerm<T>{{CudaData<const T>(x)}, CudaData<T>(outputs[0]), cut.channels});
  });
}

// Grid: any; threads stride over the pixels of dx.
template <typename T, int kSize>
__global__ void SpreadMean(DeviceImage<kSize> in, int64_t threads, const T* dy, T* dx) {
  const auto pixels = static_cast<Wide<T>>(in.height * in.width);
  ForEachOnGrid(threads, [&](int64_t i) {
    const PixelChannels to = in.Of(i);
    const auto v = LoadVector<kSize>(dy + to.n * in.channels + to.c);
    Wide<T> values[kSize];
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] = Load(v.at[e]) / pixels;
    StoreVector<kSize>(values, dx + in.At(to));
  });
}

void GradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const TensorView &dy = inputs[0], &dx = outputs[0];
  ForCudaFloat(dy.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    ForChannelVectors<T>({dy, dx}, [&](auto size) {
      constexpr int kSize = decltype(size)::value;
      const DeviceImage<kSize> in(dx.type);
      Launch(context, BlocksFor(in.threads()), kBlock, SpreadMean<T, kSize>, in, in.threads(),
             CudaData<const T>(dy), CudaData<T>(dx));
    });
  });
}

}  // namespace

std::vector<KernelRow> GlobalAvgPoolCudaKernels() {
  return {CudaRow("global_avg_pool", PoolKernel), CudaRow("global_avg_pool_grad", GradKernel)};
}

}  // namespace capstan
