// Kernels that make each element of one output from the elements of the inputs at its place.
//
//   void AddKernel(KernelContext& context, std::span<const TensorView> outputs,
//                  std::span<const TensorView> inputs, const AnyStruct&) {
//     MapFloats<2>(context, outputs, inputs, [] __device__(auto a, auto b) { return a + b; });
//   }
//
// Arguments lie in one order (InOneOrder). Functions see float (double for f64) whatever the type.
#pragma once

#include <array>

#include "engine/kernel/flat.h"
#include "ops/cuda/launch.cuh"

namespace capstan {

// Elements that one thread moves at once.
template <typename T, int kSize>
struct alignas(std::min<size_t>(kSize * sizeof(T), 16)) Vector {
  T at[kSize];
};

// As many as one access of 16 bytes takes.
template <typename T>
inline constexpr int kPackSize = 16 / static_cast<int>(sizeof(T));
template <typename T>
using Pack = Vector<T, kPackSize<T>>;

template <typename T, int kInputs>
struct MapArguments {
  std::array<const T*, kInputs> in;
  T* out;
};

template <typename T, int kInputs, typename F, size_t... I>
__device__ inline T MapOne(F f, const MapArguments<T, kInputs>& a, int64_t i,
                           std::index_sequence<I...>) {
  return Store<T>(f(Load(a.in[I][i])...));
}

template <typename T, int kInputs, typename F, size_t... I>
__device__ inline void MapPack(F f, const MapArguments<T, kInputs>& a, int64_t pack,
                               std::index_sequence<I...>) {
  const Pack<T> in[kInputs] = {reinterpret_cast<const Pack<T>*>(a.in[I])[pack]...};
  Pack<T> out;
#pragma unroll
  for (int e = 0; e < kPackSize<T>; ++e) out.at[e] = Store<T>(f(Load(in[I].at[e])...));
  reinterpret_cast<Pack<T>*>(a.out)[pack] = out;
}

// Grid: any; threads stride over packs, and over the elements behind the last whole pack. Bound by
// memory: (inputs + 1) * n * sizeof(T) bytes.
template <typename T, int kInputs, typename F>
__global__ void MapElements(int64_t n, F f, MapArguments<T, kInputs> a, int64_t packs) {
  constexpr auto kAll = std::make_index_sequence<kInputs>();
  ForEachOnGrid(packs, [&](int64_t p) { MapPack(f, a, p, kAll); });
  const int64_t rest = packs * kPackSize<T>;
  ForEachOnGrid(n - rest, [&](int64_t i) { a.out[rest + i] = MapOne(f, a, rest + i, kAll); });
}

template <typename T, int kInputs, typename F>
void Map(KernelContext& context, int64_t n, const MapArguments<T, kInputs>& a, F f) {
  auto aligned = reinterpret_cast<uintptr_t>(a.out);
  for (const T* in : a.in) aligned |= reinterpret_cast<uintptr_t>(in);
  const int64_t packs = aligned % sizeof(Pack<T>) == 0 ? n / kPackSize<T> : 0;
  Launch(context, BlocksFor(packs > 0 ? packs : n), kBlock, MapElements<T, kInputs, F>, n, f, a,
         packs);
}

// out[0] = f(in[0], ..., in[kInputs - 1]), all of one float type.
template <int kInputs, typename F>
void MapFloats(KernelContext& context, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, F f) {
  ForCudaFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    MapArguments<T, kInputs> a{.out = CudaData<T>(outputs[0])};
    for (size_t i = 0; i < kInputs; ++i) a.in[i] = CudaData<const T>(inputs[i]);
    Map(context, outputs[0].type.count(), a, f);
  });
}

inline KernelRow ElementwiseCudaRow(const char* op, KernelFn fn) {
  KernelRow row = CudaRow(op, fn);
  row.supports = InOneOrder;
  return row;
}

}  // namespace capstan
