// Images [n, c, h, w] for kernels in which a thread makes one pixel of some neighbouring channels.
//
//   ForCudaFloat(dtype, [&](auto zero) {
//     using T = decltype(zero);
//     ForChannelVectors<T>({x, y}, [&](auto size) {
//       constexpr int kSize = decltype(size)::value;
//       const DeviceImage<kSize> to(y.type);
//       Launch(context, BlocksFor(to.threads()), kBlock, MyKernel<T, kSize>, to, ...);
//     });
//   });
#pragma once

#include <initializer_list>

#include "engine/kernel/flat.h"
#include "engine/tensor/tensor_view.h"
#include "ops/cuda/elementwise.cuh"

namespace capstan {

// kSize neighbouring channels of a pixel, the first of which is c.
struct PixelChannels {
  int64_t n, h, w, c;
};

template <int kSize>
struct DeviceImage {
  int64_t samples, channels, height, width;
  int64_t n_stride, c_stride, h_stride, w_stride;  // in elements

  explicit DeviceImage(const TensorType& type)
      : samples(type.shape[0]),
        channels(type.shape[1]),
        height(type.shape[2]),
        width(type.shape[3]) {
    const auto strides = type.Strides();
    n_stride = strides[0];
    c_stride = strides[1];
    h_stride = strides[2];
    w_stride = strides[3];
  }

  int64_t threads() const { return samples * height * width * (channels / kSize); }

  // What thread `i` makes: channels fastest, whatever the memory format.
  __device__ PixelChannels Of(int64_t i) const {
    const int64_t groups = channels / kSize;
    PixelChannels p;
    p.c = i % groups * kSize;
    i /= groups;
    p.w = i % width;
    i /= width;
    p.h = i % height;
    p.n = i / height;
    return p;
  }
  __device__ int64_t At(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * n_stride + c * c_stride + h * h_stride + w * w_stride;
  }
  __device__ int64_t At(const PixelChannels& p) const { return At(p.n, p.c, p.h, p.w); }
};

template <int kSize, typename T>
__device__ inline Vector<T, kSize> LoadVector(const T* from) {
  return *reinterpret_cast<const Vector<T, kSize>*>(from);
}
template <int kSize, typename T>
__device__ inline void StoreVector(const Vector<T, kSize>& v, T* to) {
  *reinterpret_cast<Vector<T, kSize>*>(to) = v;
}

template <int kSize, typename T>
__device__ inline void StoreVector(const Wide<T> (&values)[kSize], T* to) {
  Vector<T, kSize> v;
#pragma unroll
  for (int e = 0; e < kSize; ++e) v.at[e] = Store<T>(values[e]);
  StoreVector<kSize>(v, to);
}

// Calls f(std::integral_constant<int, kSize>): a pack where the images, of type T, let packs of
// channels be read at once; else one channel.
template <typename T, typename F>
void ForChannelVectors(std::initializer_list<TensorView> images, F&& f) {
  bool packs = true;
  for (const TensorView& image : images) {
    packs = packs && IsChannelsLast(image.type) && image.type.shape[1] % kPackSize<T> == 0 &&
            reinterpret_cast<uintptr_t>(image.data) % sizeof(Pack<T>) == 0;
  }
  if (packs) return f(std::integral_constant<int, kPackSize<T>>{});
  return f(std::integral_constant<int, 1>{});
}

}  // namespace capstan
