// CUDA kernels.
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/strided.cuh"
#include "ops/reduce/reduce.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// Of x: the dimensions that stay and those that are summed.
struct Split {
  DeviceShape outer, inner;
  DeviceStrides x_outer, x_inner;
  int64_t outer_count = 1, inner_count = 1;

  Split(const TensorType& x, const std::vector<int64_t>& axes) {
    const std::vector<bool> reduced = ReducedDims(axes, x.ndim());
    const auto strides = x.Strides();
    for (int d = 0; d < x.ndim(); ++d) {
      const auto at = static_cast<size_t>(d);
      DeviceShape& shape = reduced[at] ? inner : outer;
      (reduced[at] ? x_inner : x_outer).stride[shape.ndim] = strides[at];
      shape.size[shape.ndim++] = x.shape[d];
      (reduced[at] ? inner_count : outer_count) *= x.shape[d];
    }
  }
};

// Grid: one block for each element of y, which is row-major; its threads stride over the sum.
template <typename T>
__global__ void SumInner(Split s, Wide<T> factor, const T* x, T* y) {
  __shared__ Wide<T> shared[kWarp];
  for (int64_t o = blockIdx.x; o < s.outer_count; o += gridDim.x) {
    const T* from = x + s.x_outer.At(s.outer, o);
    Wide<T> sum = 0;
    for (int64_t i = threadIdx.x; i < s.inner_count; i += blockDim.x) {
      sum += Load(from[s.x_inner.At(s.inner, i)]);
    }
    sum = BlockSum(sum, shared);
    if (threadIdx.x == 0) y[o] = Store<T>(sum * factor);
    __syncthreads();
  }
}

template <bool kMean>
void ReduceSumKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const Split s(inputs[0].type, any.As<ReduceAttrs>().axes);
  const double factor = kMean ? 1.0 / static_cast<double>(s.inner_count) : 1.0;
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(s.outer_count, 1), kBlock, SumInner<T>, s, factor,
           CudaData<const T>(inputs[0]), CudaData<T>(outputs[0]));
  });
}

// The first maximum that a thread has seen, in row-major order of what is reduced.
template <typename W>
struct First {
  W value;
  int64_t at;

  // Greater, or a NaN among numbers.
  __device__ static bool Beats(W v, W best) { return v > best || (v != v && best == best); }
  __device__ void Take(const First& other) {
    const bool wins = Beats(other.value, value) || (!Beats(value, other.value) && other.at < at);
    if (wins) *this = other;
  }
};

// That of one slice, in every thread of the block. `shared` is free again after the call.
template <typename T>
__device__ First<Wide<T>> FirstMaximum(const Split& s, const T* from,
                                       First<Wide<T>> (&shared)[kWarp]) {
  using W = Wide<T>;
  // Threads without an element lose to all others.
  First<W> best = {-static_cast<W>(INFINITY), INT64_MAX};
  for (int64_t i = threadIdx.x; i < s.inner_count; i += blockDim.x) {
    best.Take({Load(from[s.x_inner.At(s.inner, i)]), i});
  }
  const auto over_warp = [&] {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      best.Take({__shfl_xor_sync(0xffffffffu, best.value, distance),
                 __shfl_xor_sync(0xffffffffu, best.at, distance)});
    }
  };
  over_warp();
  const int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  if (lane == 0) shared[threadIdx.x / kWarp] = best;
  __syncthreads();
  best = shared[lane < warps ? lane : 0];
  over_warp();
  __syncthreads();
  return best;
}

// Grid: one block for each element of y, which is row-major.
template <typename T>
__global__ void MaxInner(Split s, const T* x, T* y) {
  __shared__ First<Wide<T>> shared[kWarp];
  for (int64_t o = blockIdx.x; o < s.outer_count; o += gridDim.x) {
    const auto best = FirstMaximum(s, x + s.x_outer.At(s.outer, o), shared);
    if (threadIdx.x == 0) y[o] = Store<T>(best.value);
  }
}

void ReduceMaxKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const Split s(inputs[0].type, any.As<ReduceAttrs>().axes);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(s.outer_count, 1), kBlock, MaxInner<T>, s,
           CudaData<const T>(inputs[0]), CudaData<T>(outputs[0]));
  });
}

// Grid: one block for each element of dy, which is row-major; it writes the whole slice of dx.
template <typename T>
__global__ void MarkMax(Split s, Split dx_split, const T* x, const T* dy, T* dx) {
  __shared__ First<Wide<T>> shared[kWarp];
  for (int64_t o = blockIdx.x; o < s.outer_count; o += gridDim.x) {
    const auto best = FirstMaximum(s, x + s.x_outer.At(s.outer, o), shared);
    T* to = dx + dx_split.x_outer.At(s.outer, o);
    for (int64_t i = threadIdx.x; i < s.inner_count; i += blockDim.x) {
      to[dx_split.x_inner.At(s.inner, i)] = i == best.at ? dy[o] : Store<T>(0);
    }
  }
}

void ReduceMaxGradKernel(KernelContext& context, Views outputs, Views inputs,
                         const AnyStruct& any) {
  const auto& axes = any.As<ReduceAttrs>().axes;
  const Split s(inputs[0].type, axes), dx_split(outputs[0].type, axes);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(s.outer_count, 1), kBlock, MarkMax<T>, s, dx_split,
           CudaData<const T>(inputs[0]), CudaData<const T>(inputs[1]), CudaData<T>(outputs[0]));
  });
}

// Grid: any; threads stride over y by logical index.
template <typename T>
__global__ void Repeat(int64_t n, DeviceShape shape, DeviceStrides y_strides,
                       DeviceStrides x_strides, Wide<T> scale, const T* x, T* y) {
  ForEachOnGrid(n, [&](int64_t i) {
    y[y_strides.At(shape, i)] = Store<T>(scale * Load(x[x_strides.At(shape, i)]));
  });
}

void BroadcastKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BroadcastAttrs>();
  const TensorType &x = inputs[0].type, &y = outputs[0].type;
  const auto strides = x.Strides();
  DeviceStrides x_strides;
  size_t from = 0;
  for (int d = 0; d < y.ndim(); ++d) {
    const bool repeats = std::find(attrs.axes.begin(), attrs.axes.end(), d) != attrs.axes.end();
    if (!repeats) x_strides.stride[d] = strides[from];
    if (!repeats || attrs.keep_dims) ++from;
  }
  ForCudaFloat(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(context, BlocksFor(y.count()), kBlock, Repeat<T>, y.count(), DeviceShape(y.shape),
           DeviceStrides(y), x_strides, attrs.scale, CudaData<const T>(inputs[0]),
           CudaData<T>(outputs[0]));
  });
}

bool IsPlain(TensorType type) {
  const TensorType given = type;
  type.format = MemoryFormat::kPlain;
  return SameOrder(type, given);
}
bool PlainOutput(const OpCall& call) { return IsPlain(call.Out(0)); }
bool PlainGradient(const OpCall& call) { return IsPlain(call.In(1)); }

}  // namespace

std::vector<KernelRow> ReduceCudaKernels() {
  KernelRow sum = CudaRow("reduce_sum", ReduceSumKernel<false>);
  KernelRow mean = CudaRow("reduce_mean", ReduceSumKernel<true>);
  KernelRow max = CudaRow("reduce_max", ReduceMaxKernel);
  KernelRow max_grad = CudaRow("reduce_max_grad", ReduceMaxGradKernel);
  sum.supports = mean.supports = max.supports = PlainOutput;
  max_grad.supports = PlainGradient;
  return {sum, mean, max, max_grad, CudaRow("broadcast", BroadcastKernel)};
}

}  // namespace capstan
