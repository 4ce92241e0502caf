// CUDA kernels. Saved: for each output the winner's place in its window, row by row, a byte where
// the window lets it; ordered as channels_last, whatever the memory format.
#include "ops/cuda/images.cuh"
#include "ops/max_pool/max_pool.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Grid: any; threads stride over the pixels of y. Neighbouring windows meet in the cache: x is read
// once, y and saved are written once.
template <typename T, int kSize, typename Place>
__global__ void PoolMax(Window window, DeviceImage<kSize> in, DeviceImage<kSize> out,
                        int64_t threads, const T* x, T* y, Place* saved) {
  using W = Wide<T>;
  ForEachOnGrid(threads, [&](int64_t i) {
    const PixelChannels to = out.Of(i);
    const PixelRange rows = window.Inside(0, to.h, in.height);
    const PixelRange columns = window.Inside(1, to.w, in.width);
    W best[kSize] = {};
    int32_t winner[kSize];
#pragma unroll
    for (int e = 0; e < kSize; ++e) winner[e] = -1;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const auto v = LoadVector<kSize>(x + in.At(to.n, to.c, h, w));
        const int64_t place =
            (h - window.Begin(0, to.h)) * window.kernel[1] + w - window.Begin(1, to.w);
#pragma unroll
        for (int e = 0; e < kSize; ++e) {
          const W value = Load(v.at[e]);
          // A NaN wins; one that leads stays.
          if (winner[e] < 0 || (!(value <= best[e]) && best[e] == best[e])) {
            best[e] = value;
            winner[e] = static_cast<int32_t>(place);
          }
        }
      }
    }
    StoreVector<kSize>(best, y + out.At(to));
    Vector<Place, kSize> places;
#pragma unroll
    for (int e = 0; e < kSize; ++e) places.at[e] = static_cast<Place>(winner[e]);
    StoreVector<kSize>(places, saved + i * kSize);
  });
}

// Grid: any; threads stride over the pixels of dx and gather from the windows that hold them, in
// one order.
template <typename T, int kSize, typename Place>
__global__ void GatherMax(Window window, DeviceImage<kSize> out, DeviceImage<kSize> in,
                          int64_t threads, const T* dy, const Place* saved, T* dx) {
  ForEachOnGrid(threads, [&](int64_t i) {
    const PixelChannels to = in.Of(i);
    const PixelRange rows = window.Seeing(0, to.h, out.height);
    const PixelRange columns = window.Seeing(1, to.w, out.width);
    Wide<T> sums[kSize] = {};
    for (int64_t p = rows.begin; p < rows.end; ++p) {
      for (int64_t q = columns.begin; q < columns.end; ++q) {
        const int64_t place =
            (to.h - window.Begin(0, p)) * window.kernel[1] + to.w - window.Begin(1, q);
        const int64_t at = ((to.n * out.height + p) * out.width + q) * out.channels + to.c;
        const auto winners = LoadVector<kSize>(saved + at);
        const auto v = LoadVector<kSize>(dy + out.At(to.n, to.c, p, q));
#pragma unroll
        for (int e = 0; e < kSize; ++e) {
          if (static_cast<int64_t>(winners.at[e]) == place) sums[e] += Load(v.at[e]);
        }
      }
    }
    StoreVector<kSize>(sums, dx + in.At(to));
  });
}

bool PlacesFitBytes(const PoolAttrs& attrs) { return attrs.kernel[0] * attrs.kernel[1] <= 256; }

// Calls f with a value of the type of saved places.
template <typename F>
void ForPlace(const PoolAttrs& attrs, F&& f) {
  PlacesFitBytes(attrs) ? f(uint8_t{}) : f(int32_t{});
}

Window WindowOf(const PoolAttrs& attrs) {
  const absl::StatusOr<Window> window = PoolWindow(attrs);
  CHECK_OK(window);
  return *window;
}

void MaxPoolKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<PoolAttrs>();
  const TensorView &x = inputs[0], &y = outputs[0];
  ForCudaFloat(x.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    ForChannelVectors<T>({x, y}, [&](auto size) {
      constexpr int kSize = decltype(size)::value;
      const DeviceImage<kSize> in(x.type), out(y.type);
      ForPlace(attrs, [&](auto place) {
        using Place = decltype(place);
        Launch(context, BlocksFor(out.threads()), kBlock, PoolMax<T, kSize, Place>, WindowOf(attrs),
               in, out, out.threads(), CudaData<const T>(x), CudaData<T>(y),
               CudaData<Place>(outputs[1]));
      });
    });
  });
}

void MaxPoolGradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const PoolAttrs& attrs = any.As<MaxPoolGradAttrs>();
  const TensorView &dy = inputs[0], &dx = outputs[0];
  ForCudaFloat(dy.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    ForChannelVectors<T>({dy, dx}, [&](auto size) {
      constexpr int kSize = decltype(size)::value;
      const DeviceImage<kSize> out(dy.type), in(dx.type);
      ForPlace(attrs, [&](auto place) {
        using Place = decltype(place);
        Launch(context, BlocksFor(in.threads()), kBlock, GatherMax<T, kSize, Place>,
               WindowOf(attrs), out, in, in.threads(), CudaData<const T>(dy),
               CudaData<const Place>(inputs[1]), CudaData<T>(dx));
      });
    });
  });
}

int64_t SavedBytes(const OpCall& call, const void*, int) {
  return call.Out(0).count() * (PlacesFitBytes(call.Attrs<PoolAttrs>()) ? 1 : 4);
}

}  // namespace

std::vector<KernelRow> MaxPoolCudaKernels() {
  KernelRow forward = CudaRow("max_pool", MaxPoolKernel);
  forward.saved_bytes = SavedBytes;
  return {forward, CudaRow("max_pool_grad", MaxPoolGradKernel)};
}

}  // namespace capstan
