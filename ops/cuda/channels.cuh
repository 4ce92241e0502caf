// Work by channels: sums over all elements of each channel, and elementwise work with a few numbers
// of each channel's own. Deterministic: how work is cut depends on sizes only.
//
// A tensor is seen as [outer, channels, inner] in memory. Where channels are innermost ([n, c] and
// channels_last images) and fill whole 16-byte packs, memory is read in rows; elsewhere channel by
// channel, in planes.
//
//   const ChannelCut cut(x.type, /*axis=*/1, {x.data, y.data});
//   SumChannels(context, cut, Term{...});                  // a sum for each chunk and channel
//   FinishSums(context, cut, parts, Finish{...});          // adds the chunks up
//   MapChannels<T, 1, 2>(context, cut, {{x}, y}, numbers, ScaleAndShift{});
#pragma once

#include <bit>
#include <initializer_list>

#include "engine/tensor/tensor_type.h"
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/reduce.cuh"

namespace capstan {

// Blocks that run at once: kernels over rows get one piece of work for each.
inline constexpr int kRowBlocksPerSm = 3;
inline constexpr int64_t kRowBlocks = 132 * kRowBlocksPerSm;

struct ChannelCut {
  int64_t outer = 0, channels = 0, inner = 0;
  bool rows = false;   // else planes
  int lanes = 1;       // rows: threads side by side along a row, a power of two
  int64_t tiles = 1;   // rows: pieces of a row
  int64_t chunks = 1;  // pieces of what lies beside the channels

  // `memory`: what is read and written in packs; misaligned pieces make it planes.
  ChannelCut(const TensorType& type, int axis, std::initializer_list<const void*> memory) {
    uintptr_t bits = 0;
    for (const void* at : memory) bits |= reinterpret_cast<uintptr_t>(at);
    Cut(type, axis, bits % 16 == 0);
  }

  // Workspace for `sums` numbers of every chunk and channel, whatever the alignment.
  static int64_t PartsBytes(int sums, const TensorType& type, int axis) {
    const int64_t chunks = std::max(ChannelCut(type, axis, true).chunks,  //
                                    ChannelCut(type, axis, false).chunks);
    return chunks * sums * type.shape[axis] * static_cast<int64_t>(sizeof(double));
  }

  // Elements of a channel.
  __host__ __device__ int64_t beside() const { return outer * inner; }
  // Where a chunk begins among them.
  __host__ __device__ int64_t Begin(int64_t chunk) const { return beside() * chunk / chunks; }
  // Where in memory the element `i` of a channel is.
  __device__ int64_t At(int64_t c, int64_t i) const {
    return (i / inner * channels + c) * inner + i % inner;
  }
  // Chunks become the samples, which are outermost.
  void CutBySample(int64_t samples) { chunks = samples; }
  unsigned blocks() const { return static_cast<unsigned>(chunks * (rows ? tiles : channels)); }

 private:
  ChannelCut(const TensorType& type, int axis, bool aligned) { Cut(type, axis, aligned); }

  void Cut(const TensorType& type, int axis, bool aligned) {
    channels = type.shape[axis];
    inner = std::max<int64_t>(type.Strides()[static_cast<size_t>(axis)], 1);
    outer = type.count() / std::max<int64_t>(channels * inner, 1);
    const int64_t pack = 16 / static_cast<int64_t>(SizeOf(type.dtype));
    rows = aligned && inner == 1 && channels % pack == 0;
    if (rows) {
      const int64_t packs = std::max<int64_t>(channels / pack, 1);
      lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(packs, 32))));
      tiles = (packs + lanes - 1) / lanes;
      const int64_t lines = kBlock / lanes;
      chunks =
          std::clamp<int64_t>(outer / (4 * lines), 1, std::max<int64_t>(kRowBlocks / tiles, 1));
    } else {
      const int64_t most = 4 * kRowBlocks / std::max<int64_t>(channels, 1);
      chunks = std::clamp<int64_t>(beside() / (8 * kBlock), 1, std::max<int64_t>(most, 1));
    }
  }
};

// Steps through a channel's elements, kBlock at a time.
struct PlaneWalk {
  int64_t plane, place;

  __device__ PlaneWalk(const ChannelCut& cut, int64_t i)
      : plane(i / cut.inner), place(i % cut.inner) {}
  __device__ int64_t At(const ChannelCut& cut, int64_t c) const {
    return (plane * cut.channels + c) * cut.inner + place;
  }
  __device__ void Next(const ChannelCut& cut, int64_t step_planes, int64_t step_places) {
    plane += step_planes;
    place += step_places;
    if (place < cut.inner) return;
    place -= cut.inner;
    ++plane;
  }
};

// Calls f(at) for the places in memory of a channel's elements [begin, end), over the block.
template <typename F>
__device__ inline void ForEachOfChannel(const ChannelCut& cut, int64_t c, int64_t begin,
                                        int64_t end, F f) {
  PlaneWalk walk(cut, begin + threadIdx.x);
  const int64_t step_planes = kBlock / cut.inner, step_places = kBlock % cut.inner;
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlock) {
    f(walk.At(cut, c));
    walk.Next(cut, step_planes, step_places);
  }
}

// A thread's place in a kernel over rows.
template <typename T>
struct RowThread {
  int lane, line, lines;
  int64_t chunk, tile, packs, pack;

  __device__ explicit RowThread(const ChannelCut& cut)
      : lane(static_cast<int>(threadIdx.x) % cut.lanes),
        line(static_cast<int>(threadIdx.x) / cut.lanes),
        lines(kBlock / cut.lanes),
        chunk(blockIdx.x / cut.tiles),
        tile(blockIdx.x % cut.tiles),
        packs(cut.channels / kPackSize<T>),
        pack(tile * cut.lanes + lane) {}
};

// Rows that a thread reads before it computes.
template <int kInputs>
inline constexpr int kRowsAtOnce = kInputs == 1 ? 4 : 2;

template <typename T, int kRows, size_t kInputs>
__device__ inline void LoadRows(const std::array<const T*, kInputs>& in, int64_t pack, int64_t step,
                                Pack<T> (&v)[kRows][kInputs]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (size_t i = 0; i < kInputs; ++i) {
      v[r][i] = reinterpret_cast<const Pack<T>*>(in[i])[pack + r * step];
    }
  }
}

// A term adds an element's inputs to the sums of its channel:
//   Element                                   type of the inputs
//   kInputs, kSums, in                        the inputs
//   Center(c, first)                          a number of the channel's; `first`: an element of it
//   Add(center, values, sums)
//   Write(chunk, c, center, count, sums)      takes the sums over `count` elements of a chunk
template <typename Term, int kRows, typename W>
__device__ inline void AddRows(const Pack<typename Term::Element> (&v)[kRows][Term::kInputs],
                               const W (&center)[kPackSize<typename Term::Element>],
                               W (&sums)[kPackSize<typename Term::Element>][Term::kSums]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int e = 0; e < kPackSize<typename Term::Element>; ++e) {
      W values[Term::kInputs];
#pragma unroll
      for (int i = 0; i < Term::kInputs; ++i) values[i] = Load(v[r][i].at[e]);
      Term::Add(center[e], values, sums[e]);
    }
  }
}

// Grid: a block for each chunk of rows and tile of channels. A block is lines x lanes of threads;
// warps read whole 32-byte sectors, and every element once.
template <typename Term>
__global__ void __launch_bounds__(kBlock, kRowBlocksPerSm) SumRows(ChannelCut cut, Term term) {
  using T = typename Term::Element;
  using W = Wide<T>;
  constexpr int kPack = kPackSize<T>, kSums = Term::kSums, kRows = kRowsAtOnce<Term::kInputs>;
  const RowThread<T> t(cut);
  const int64_t begin = cut.Begin(t.chunk), end = cut.Begin(t.chunk + 1);
  W sums[kPack][kSums] = {};
  if (t.pack < t.packs) {
    W center[kPack];
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      const int64_t c = t.pack * kPack + e;
      center[e] = term.Center(c, begin * cut.channels + c);
    }
    int64_t row = begin + t.line;
    for (; row + (kRows - 1) * t.lines < end; row += kRows * t.lines) {
      Pack<T> v[kRows][Term::kInputs];
      LoadRows(term.in, row * t.packs + t.pack, t.lines * t.packs, v);
      AddRows<Term>(v, center, sums);
    }
    for (; row < end; row += t.lines) {
      Pack<T> v[1][Term::kInputs];
      LoadRows(term.in, row * t.packs + t.pack, 0, v);
      AddRows<Term>(v, center, sums);
    }
  }
  // Over the lines of a warp, then over the warps.
  __shared__ W shared[kBlock / kWarp][kSums][kPack][kWarp + 1];
  const int warp = threadIdx.x / kWarp;
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      W sum = sums[e][s];
      for (int distance = cut.lanes; distance < kWarp; distance *= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      }
      if (threadIdx.x % kWarp < cut.lanes) shared[warp][s][e][t.lane] = sum;
    }
  }
  __syncthreads();
  const int e = threadIdx.x % kPack, lane = threadIdx.x / kPack;
  const int64_t c = (t.tile * cut.lanes + lane) * kPack + e;
  if (lane >= cut.lanes || c >= cut.channels) return;
  W total[kSums] = {};
  for (int w = 0; w < kBlock / kWarp; ++w) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) total[s] += shared[w][s][e][lane];
  }
  term.Write(t.chunk, c, term.Center(c, begin * cut.channels + c), end - begin, total);
}

// Grid: a block for each chunk of each channel.
template <typename Term>
__global__ void SumPlanes(ChannelCut cut, Term term) {
  using W = Wide<typename Term::Element>;
  constexpr int kSums = Term::kSums;
  const int64_t chunk = blockIdx.x / cut.channels, c = blockIdx.x % cut.channels;
  const int64_t begin = cut.Begin(chunk), end = cut.Begin(chunk + 1);
  const W center = term.Center(c, cut.At(c, begin));
  W sums[kSums] = {};
  ForEachOfChannel(cut, c, begin, end, [&](int64_t at) {
    W values[Term::kInputs];
#pragma unroll
    for (int i = 0; i < Term::kInputs; ++i) values[i] = Load(term.in[i][at]);
    Term::Add(center, values, sums);
  });
  __shared__ W shared[kSums][kWarp];
#pragma unroll
  for (int s = 0; s < kSums; ++s) sums[s] = BlockSum(sums[s], shared[s]);
  if (threadIdx.x == 0) term.Write(chunk, c, center, end - begin, sums);
}

template <typename Term>
void SumChannels(KernelContext& context, const ChannelCut& cut, const Term& term) {
  if (cut.blocks() == 0) return;
  Launch(context, cut.blocks(), kBlock, cut.rows ? SumRows<Term> : SumPlanes<Term>, cut, term);
}

// Channels of one block of FinishSums: 64 bytes of every chunk.
inline constexpr int kFinishedChannels = 8;

// Calls f(c, sums) once for every channel with the sums over all chunks of parts
// [chunks][F::kSums][channels]. Grid: a block for kFinishedChannels channels.
template <typename F>
__global__ void AddChunks(int64_t channels, int64_t chunks, const double* parts, F f) {
  constexpr int kSums = F::kSums, kLines = kBlock / kFinishedChannels;
  const int lane = threadIdx.x % kFinishedChannels, line = threadIdx.x / kFinishedChannels;
  const int64_t c = int64_t{blockIdx.x} * kFinishedChannels + lane;
  double sums[kSums] = {};
  if (c < channels) {
#pragma unroll 4
    for (int64_t chunk = line; chunk < chunks; chunk += kLines) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) sums[s] += parts[(chunk * kSums + s) * channels + c];
    }
  }
  __shared__ double shared[kBlock / kWarp][kSums][kFinishedChannels];
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    for (int distance = kFinishedChannels; distance < kWarp; distance *= 2) {
      sums[s] += __shfl_xor_sync(0xffffffffu, sums[s], distance);
    }
    if (threadIdx.x % kWarp < kFinishedChannels) shared[threadIdx.x / kWarp][s][lane] = sums[s];
  }
  __syncthreads();
  if (line > 0 || c >= channels) return;
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    sums[s] = 0;
    for (int w = 0; w < kBlock / kWarp; ++w) sums[s] += shared[w][s][lane];
  }
  f(c, sums);
}

template <typename F>
void FinishSums(KernelContext& context, const ChannelCut& cut, const double* parts, const F& f) {
  const int64_t blocks = (cut.channels + kFinishedChannels - 1) / kFinishedChannels;
  if (blocks == 0) return;
  Launch(context, static_cast<unsigned>(blocks), kBlock, AddChunks<F>, cut.channels, cut.chunks,
         parts, f);
}

// Calls f(c) for every channel.
template <typename F>
__global__ void CallForChannels(int64_t channels, F f) {
  ForEachOnGrid(channels, f);
}
template <typename F>
void ForChannels(KernelContext& context, int64_t channels, const F& f) {
  Launch(context, BlocksFor(channels), kBlock, CallForChannels<F>, channels, f);
}

template <typename T, int kNumbers>
__device__ inline void LoadNumbers(const Wide<T>* numbers, int64_t channels, int64_t c,
                                   Wide<T> (&k)[kNumbers]) {
#pragma unroll
  for (int j = 0; j < kNumbers; ++j) k[j] = numbers[j * channels + c];
}

template <typename T, int kInputs, int kNumbers, int kRows, typename F>
__device__ inline void MapLoaded(const Pack<T> (&v)[kRows][kInputs],
                                 const Wide<T> (&k)[kPackSize<T>][kNumbers], F f, T* out,
                                 int64_t pack, int64_t step) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    Pack<T> result;
#pragma unroll
    for (int e = 0; e < kPackSize<T>; ++e) {
      Wide<T> values[kInputs];
#pragma unroll
      for (int i = 0; i < kInputs; ++i) values[i] = Load(v[r][i].at[e]);
      result.at[e] = Store<T>(f(k[e], values));
    }
    reinterpret_cast<Pack<T>*>(out)[pack + r * step] = result;
  }
}

// Grid: as SumRows. From the last row of a chunk to its first, since a sum before has left the last
// ones in the cache. The output may lie over an input.
template <typename T, int kInputs, int kNumbers, typename F>
__global__ void __launch_bounds__(kBlock, kRowBlocksPerSm)
    MapRows(ChannelCut cut, MapArguments<T, kInputs> a, const Wide<T>* numbers, F f) {
  constexpr int kPack = kPackSize<T>, kRows = kRowsAtOnce<kInputs>;
  const RowThread<T> t(cut);
  if (t.pack >= t.packs) return;
  Wide<T> k[kPack][kNumbers];
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    LoadNumbers<T>(numbers, cut.channels, t.pack * kPack + e, k[e]);
  }
  const int64_t begin = cut.Begin(t.chunk), step = -t.lines * t.packs;
  int64_t row = cut.Begin(t.chunk + 1) - 1 - t.line;
  for (; row - (kRows - 1) * t.lines >= begin; row -= kRows * t.lines) {
    Pack<T> v[kRows][kInputs];
    LoadRows(a.in, row * t.packs + t.pack, step, v);
    MapLoaded<T>(v, k, f, a.out, row * t.packs + t.pack, step);
  }
  for (; row >= begin; row -= t.lines) {
    Pack<T> v[1][kInputs];
    LoadRows(a.in, row * t.packs + t.pack, 0, v);
    MapLoaded<T>(v, k, f, a.out, row * t.packs + t.pack, 0);
  }
}

// Grid: a block for each chunk of each channel. The output may lie over an input.
template <typename T, int kInputs, int kNumbers, typename F>
__global__ void MapPlanes(ChannelCut cut, MapArguments<T, kInputs> a, const Wide<T>* numbers, F f) {
  const int64_t chunk = blockIdx.x / cut.channels, c = blockIdx.x % cut.channels;
  Wide<T> k[kNumbers];
  LoadNumbers<T>(numbers, cut.channels, c, k);
  ForEachOfChannel(cut, c, cut.Begin(chunk), cut.Begin(chunk + 1), [&](int64_t at) {
    Wide<T> values[kInputs];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) values[i] = Load(a.in[i][at]);
    a.out[at] = Store<T>(f(k, values));
  });
}

// out = f(k, inputs) for each element, k[j] = numbers[j * channels + channel].
template <typename T, int kInputs, int kNumbers, typename F>
void MapChannels(KernelContext& context, const ChannelCut& cut, const MapArguments<T, kInputs>& a,
                 const Wide<T>* numbers, const F& f) {
  if (cut.blocks() == 0) return;
  Launch(context, cut.blocks(), kBlock,
         cut.rows ? MapRows<T, kInputs, kNumbers, F> : MapPlanes<T, kInputs, kNumbers, F>, cut, a,
         numbers, f);
}

}  // namespace capstan
