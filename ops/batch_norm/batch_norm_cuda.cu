// CUDA kernels: one pass over memory for sums, a small one over channels, one pass for the result.
// Parameters and statistics have f32 (f64 for f64 images), whatever the image's type.
//
// Workspace: four numbers of each channel, then the sums of every chunk.
#include "engine/kernel/strided.h"
#include "ops/batch_norm/norm_call.h"
#include "ops/cuda/channels.cuh"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

constexpr int kAxis = 1;

int64_t NumbersBytes(int64_t channels) {
  return 4 * channels * static_cast<int64_t>(sizeof(double));
}

int64_t NumbersWorkspace(const OpCall& call, const void*) {
  return NumbersBytes(call.In(0).shape[kAxis]);
}

int64_t Workspace(const OpCall& call, const void* prepared) {
  return NumbersWorkspace(call, prepared) + ChannelCut::PartsBytes(2, call.In(0), kAxis);
}

template <typename W>
W* Numbers(const KernelContext& context) {
  return static_cast<W*>(context.workspace);
}

double* Parts(const KernelContext& context, const ChannelCut& cut) {
  return reinterpret_cast<double*>(static_cast<char*>(context.workspace) +
                                   NumbersBytes(cut.channels));
}

TensorView OptionalInput(Views inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : TensorView{};
}

// Sums of x and x^2, gathered in float about an element of the chunk, so that a large mean loses
// nothing.
template <typename T>
struct MomentTerm {
  using Element = T;
  static constexpr int kInputs = 1, kSums = 2;
  std::array<const T*, kInputs> in;
  double* parts;
  int64_t channels;

  __device__ Wide<T> Center(int64_t, int64_t first) const { return Load(in[0][first]); }
  static __device__ void Add(Wide<T> center, const Wide<T> (&v)[kInputs], Wide<T> (&sums)[kSums]) {
    const Wide<T> d = v[0] - center;
    sums[0] += d;
    sums[1] += d * d;
  }
  __device__ void Write(int64_t chunk, int64_t c, Wide<T> center, int64_t count,
                        const Wide<T> (&sums)[kSums]) const {
    const double n = static_cast<double>(count), k = center, d = sums[0];
    double* to = parts + chunk * kSums * channels + c;
    to[0] = n * k + d;
    to[channels] = n * k * k + 2 * k * d + sums[1];
  }
};

// Sums of dy and dy * (x - mean); of three inputs the last is y, and dy counts where it is > 0.
template <typename T, int kCount>
struct GradTerm {
  using Element = T;
  static constexpr int kInputs = kCount, kSums = 2;
  std::array<const T*, kInputs> in;
  const Wide<T>* mean;
  double* parts;
  int64_t channels;

  __device__ Wide<T> Center(int64_t c, int64_t) const { return mean[c]; }
  static __device__ void Add(Wide<T> center, const Wide<T> (&v)[kInputs], Wide<T> (&sums)[kSums]) {
    Wide<T> dy = v[0];
    if constexpr (kInputs == 3) dy = v[2] > 0 ? dy : Wide<T>{0};
    sums[0] += dy;
    sums[1] += dy * (v[1] - center);
  }
  __device__ void Write(int64_t chunk, int64_t c, Wide<T>, int64_t,
                        const Wide<T> (&sums)[kSums]) const {
    double* to = parts + chunk * kSums * channels + c;
    to[0] = sums[0];
    to[channels] = sums[1];
  }
};

// y = (x - k0) * k1 + k2 (+ residual), then relu.
template <typename W, int kInputs>
struct Affine {
  static constexpr int kNumbers = 3;
  bool relu;

  __device__ W operator()(const W (&k)[kNumbers], const W (&v)[kInputs]) const {
    W y = (v[0] - k[0]) * k[1] + k[2];
    if constexpr (kInputs == 2) y += v[1];
    // Written so that a NaN passes.
    return relu && y < 0 ? W{0} : y;
  }
};

// dx = dy * k0 + (x - k1) * k2 + k3, with dy as in GradTerm; of one input only the first product.
template <typename W, int kInputs>
struct GradOf {
  static constexpr int kNumbers = kInputs == 1 ? 1 : 4;

  __device__ W operator()(const W (&k)[kNumbers], const W (&v)[kInputs]) const {
    W dy = v[0];
    if constexpr (kInputs == 3) dy = v[2] > 0 ? dy : W{0};
    W dx = dy * k[0];
    if constexpr (kInputs > 1) dx += (v[1] - k[1]) * k[2] + k[3];
    return dx;
  }
};

// Where Affine's numbers are put.
template <typename W>
struct AffineNumbers {
  W* numbers;
  int64_t channels;

  __device__ void Set(int64_t c, W mean, W factor, W bias) const {
    numbers[c] = mean;
    numbers[channels + c] = factor;
    numbers[2 * channels + c] = bias;
  }
};

template <typename W>
struct GradNumbers {
  W* numbers;
  int64_t channels;

  __device__ void Set(int64_t c, double factor, W mean, double x_factor, double one) const {
    numbers[c] = static_cast<W>(factor);
    numbers[channels + c] = mean;
    numbers[2 * channels + c] = static_cast<W>(x_factor);
    numbers[3 * channels + c] = static_cast<W>(one);
  }
};

// Running statistics and the numbers of a result, from a channel's sums.
template <typename W>
struct Moments {
  double momentum, epsilon;
  const W *old_mean, *old_var;
  W *mean, *invstd, *new_mean, *new_var;

  struct Batch {
    double mean, invstd;
  };
  __device__ Batch Take(int64_t c, double count, double sum, double squares) const {
    const double m = sum / count;
    double variance = squares / count - m * m;
    variance = variance < 0 ? 0 : variance;
    const double inverse = 1 / sqrt(variance + epsilon);
    const double unbiased = variance * count / (count > 2 ? count - 1 : 1);
    const double moved_mean = momentum * old_mean[c] + (1 - momentum) * m;
    const double moved_var = momentum * old_var[c] + (1 - momentum) * unbiased;
    mean[c] = static_cast<W>(m);
    invstd[c] = static_cast<W>(inverse);
    new_mean[c] = static_cast<W>(moved_mean);
    new_var[c] = static_cast<W>(moved_var);
    return {m, inverse};
  }
};

template <typename W>
struct FinishBatchNorm {
  static constexpr int kSums = 2;
  double count;
  Moments<W> moments;
  const W *scale, *bias;
  AffineNumbers<W> to;

  __device__ void operator()(int64_t c, const double (&sums)[kSums]) const {
    const auto batch = moments.Take(c, count, sums[0], sums[1]);
    const W rounded = static_cast<W>(batch.mean);
    const double factor = batch.invstd * scale[c];
    // What the rounding of the mean took away comes back with the bias.
    const double offset = bias[c] - (batch.mean - rounded) * factor;
    to.Set(c, rounded, static_cast<W>(factor), static_cast<W>(offset));
  }
};

template <typename W>
struct MoveMoments {
  Moments<W> moments;
  const double *count, *sum, *squares;

  __device__ void operator()(int64_t c) const { moments.Take(c, count[c], sum[c], squares[c]); }
};

struct FinishStats {
  static constexpr int kSums = 2;
  double elements;
  double *count, *sum, *squares;

  __device__ void operator()(int64_t c, const double (&sums)[kSums]) const {
    count[c] = elements;
    sum[c] = sums[0];
    squares[c] = sums[1];
  }
};

// Affine's numbers from statistics: the last argument is a variance where `epsilon` is not
// negative, else 1 / deviation.
template <typename W>
struct AffineFromStats {
  const W *scale, *bias, *mean, *spread;
  double epsilon;
  AffineNumbers<W> to;

  __device__ void operator()(int64_t c) const {
    const double invstd = epsilon < 0 ? spread[c] : 1 / sqrt(spread[c] + epsilon);
    to.Set(c, mean[c], static_cast<W>(invstd * scale[c]), bias[c]);
  }
};

// The gradients of the parameters, and GradOf's numbers. `spread` is as in AffineFromStats; `share`
// is how much of the mean gradients is taken out of dx: 1 / count, or 0 for constant statistics.
template <typename W>
struct FinishGrad {
  static constexpr int kSums = 2;
  const W *scale, *mean, *spread;
  double epsilon, share;
  W *dscale, *dbias;
  GradNumbers<W> to;

  __device__ void operator()(int64_t c, const double (&sums)[kSums]) const {
    const double invstd = epsilon < 0 ? spread[c] : 1 / sqrt(spread[c] + epsilon);
    const double dy_xhat = sums[1] * invstd, factor = invstd * scale[c];
    dbias[c] = static_cast<W>(sums[0]);
    dscale[c] = static_cast<W>(dy_xhat);
    to.Set(c, factor, mean[c], -factor * dy_xhat * invstd * share, -factor * sums[0] * share);
  }
};

template <typename W>
struct FinishGradStats {
  static constexpr int kSums = 2;
  const W* invstd;
  W *sum_dy, *sum_dy_xhat;

  __device__ void operator()(int64_t c, const double (&sums)[kSums]) const {
    sum_dy[c] = static_cast<W>(sums[0]);
    sum_dy_xhat[c] = static_cast<W>(sums[1] * invstd[c]);
  }
};

template <typename W>
struct GradFromSums {
  const W *scale, *mean, *invstd;
  const double* count;
  const W *sum_dy, *sum_dy_xhat;
  GradNumbers<W> to;

  __device__ void operator()(int64_t c) const {
    const double factor = static_cast<double>(scale[c]) * invstd[c];
    to.Set(c, factor, mean[c], -factor * sum_dy_xhat[c] * invstd[c] / count[c],
           -factor * sum_dy[c] / count[c]);
  }
};

// y from the numbers in the workspace.
template <typename T>
void WriteAffine(KernelContext& context, const ChannelCut& cut, const TensorView& x,
                 const TensorView& residual, const TensorView& y, bool relu) {
  using W = Wide<T>;
  if (residual.data == nullptr) {
    MapChannels<T, 1, 3>(context, cut, {{CudaData<const T>(x)}, CudaData<T>(y)},
                         Numbers<W>(context), Affine<W, 1>{relu});
  } else {
    MapChannels<T, 2, 3>(context, cut,
                         {{CudaData<const T>(x), CudaData<const T>(residual)}, CudaData<T>(y)},
                         Numbers<W>(context), Affine<W, 2>{relu});
  }
}

// What the gradient rows read of the image; y only where relu is fused in.
template <typename T>
struct GradImages {
  const T *dy, *x, *y;

  GradImages(Views inputs, bool relu, size_t y_input)
      : dy(CudaData<const T>(inputs[0])),
        x(CudaData<const T>(inputs[1])),
        y(relu ? CudaData<const T>(inputs[y_input]) : nullptr) {}
};

template <typename T>
void SumGrads(KernelContext& context, const ChannelCut& cut, const GradImages<T>& in,
              const Wide<T>* mean) {
  double* parts = Parts(context, cut);
  if (in.y == nullptr) {
    SumChannels(context, cut, GradTerm<T, 2>{{in.dy, in.x}, mean, parts, cut.channels});
  } else {
    SumChannels(context, cut, GradTerm<T, 3>{{in.dy, in.x, in.y}, mean, parts, cut.channels});
  }
}

template <typename T>
void WriteGrads(KernelContext& context, const ChannelCut& cut, const GradImages<T>& in, T* dx) {
  using W = Wide<T>;
  const W* numbers = Numbers<W>(context);
  if (in.y == nullptr) {
    MapChannels<T, 2, 4>(context, cut, {{in.dy, in.x}, dx}, numbers, GradOf<W, 2>{});
  } else {
    MapChannels<T, 3, 4>(context, cut, {{in.dy, in.x, in.y}, dx}, numbers, GradOf<W, 3>{});
  }
}

void BatchNormKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormAttrs>();
  const TensorView &x = inputs[0], residual = OptionalInput(inputs, 5);
  const ChannelCut cut(x.type, kAxis, {x.data, residual.data, outputs[0].data});
  ForCudaFloat(x.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    SumChannels(context, cut,
                MomentTerm<T>{{CudaData<const T>(x)}, Parts(context, cut), cut.channels});
    const Moments<W> moments = {attrs.momentum,
                                attrs.epsilon,
                                CudaData<const W>(inputs[3]),
                                CudaData<const W>(inputs[4]),
                                CudaData<W>(outputs[1]),
                                CudaData<W>(outputs[2]),
                                CudaData<W>(outputs[3]),
                                CudaData<W>(outputs[4])};
    const FinishBatchNorm<W> finish = {static_cast<double>(cut.beside()),
                                       moments,
                                       CudaData<const W>(inputs[1]),
                                       CudaData<const W>(inputs[2]),
                                       {Numbers<W>(context), cut.channels}};
    FinishSums(context, cut, Parts(context, cut), finish);
    WriteAffine<T>(context, cut, x, residual, outputs[0], attrs.relu);
  });
}

// Both rows with given statistics; their fourth is `spread` of AffineFromStats.
void AffineKernel(KernelContext& context, Views outputs, Views inputs, double epsilon, bool relu) {
  const TensorView &x = inputs[0], residual = OptionalInput(inputs, 5);
  const ChannelCut cut(x.type, kAxis, {x.data, residual.data, outputs[0].data});
  ForCudaFloat(x.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    ForChannels(context, cut.channels,
                AffineFromStats<W>{CudaData<const W>(inputs[1]),
                                   CudaData<const W>(inputs[2]),
                                   CudaData<const W>(inputs[3]),
                                   CudaData<const W>(inputs[4]),
                                   epsilon,
                                   {Numbers<W>(context), cut.channels}});
    WriteAffine<T>(context, cut, x, residual, outputs[0], relu);
  });
}

void InferenceKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormInferenceAttrs>();
  AffineKernel(context, outputs, inputs, attrs.epsilon, attrs.relu);
}

void ApplyKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  AffineKernel(context, outputs, inputs, -1, any.As<BatchNormPartAttrs>().relu);
}

void StatsKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const ChannelCut cut(inputs[0].type, kAxis, {inputs[0].data});
  double* parts = Parts(context, cut);
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    SumChannels(context, cut, MomentTerm<T>{{CudaData<const T>(inputs[0])}, parts, cut.channels});
  });
  const FinishStats finish = {static_cast<double>(cut.beside()), CudaData<double>(outputs[0]),
                              CudaData<double>(outputs[1]), CudaData<double>(outputs[2])};
  FinishSums(context, cut, parts, finish);
}

void MomentsKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormMomentsAttrs>();
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using W = decltype(zero);
    const Moments<W> moments = {attrs.momentum,
                                attrs.epsilon,
                                CudaData<const W>(inputs[0]),
                                CudaData<const W>(inputs[1]),
                                CudaData<W>(outputs[0]),
                                CudaData<W>(outputs[1]),
                                CudaData<W>(outputs[2]),
                                CudaData<W>(outputs[3])};
    ForChannels(
        context, inputs[0].type.count(),
        MoveMoments<W>{moments, CudaData<const double>(inputs[2]),
                       CudaData<const double>(inputs[3]), CudaData<const double>(inputs[4])});
  });
}

void BatchNormGradKernel(KernelContext& context, Views outputs, Views inputs,
                         const AnyStruct& any) {
  const bool relu = any.As<BatchNormGradAttrs>().relu;
  const TensorType& type = inputs[1].type;
  const ChannelCut cut(
      type, kAxis,
      {inputs[0].data, inputs[1].data, OptionalInput(inputs, 5).data, outputs[0].data});
  ForCudaFloat(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const GradImages<T> images(inputs, relu, 5);
    const W* mean = CudaData<const W>(inputs[3]);
    SumGrads(context, cut, images, mean);
    FinishSums(context, cut, Parts(context, cut),
               FinishGrad<W>{CudaData<const W>(inputs[2]),
                             mean,
                             CudaData<const W>(inputs[4]),
                             -1,
                             1 / static_cast<double>(cut.beside()),
                             CudaData<W>(outputs[1]),
                             CudaData<W>(outputs[2]),
                             {Numbers<W>(context), cut.channels}});
    WriteGrads(context, cut, images, CudaData<T>(outputs[0]));
  });
}

void InferenceGradKernel(KernelContext& context, Views outputs, Views inputs,
                         const AnyStruct& any) {
  const double epsilon = any.As<BatchNormInferenceGradAttrs>().epsilon;
  const TensorType& type = inputs[1].type;
  const ChannelCut cut(type, kAxis, {inputs[0].data, inputs[1].data, outputs[0].data});
  ForCudaFloat(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const GradImages<T> images(inputs, false, 0);
    const W* mean = CudaData<const W>(inputs[3]);
    SumGrads(context, cut, images, mean);
    FinishSums(context, cut, Parts(context, cut),
               FinishGrad<W>{CudaData<const W>(inputs[2]),
                             mean,
                             CudaData<const W>(inputs[4]),
                             epsilon,
                             0,
                             CudaData<W>(outputs[1]),
                             CudaData<W>(outputs[2]),
                             {Numbers<W>(context), cut.channels}});
    MapChannels<T, 1, 1>(context, cut, {{images.dy}, CudaData<T>(outputs[0])}, Numbers<W>(context),
                         GradOf<W, 1>{});
  });
}

void GradStatsKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const bool relu = any.As<BatchNormPartAttrs>().relu;
  const TensorType& type = inputs[1].type;
  const ChannelCut cut(type, kAxis,
                       {inputs[0].data, inputs[1].data, OptionalInput(inputs, 4).data});
  ForCudaFloat(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    SumGrads(context, cut, GradImages<T>(inputs, relu, 4), CudaData<const W>(inputs[2]));
    FinishSums(context, cut, Parts(context, cut),
               FinishGradStats<W>{CudaData<const W>(inputs[3]), CudaData<W>(outputs[0]),
                                  CudaData<W>(outputs[1])});
  });
}

void GradApplyKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const bool relu = any.As<BatchNormPartAttrs>().relu;
  const TensorType& type = inputs[1].type;
  const ChannelCut cut(
      type, kAxis,
      {inputs[0].data, inputs[1].data, OptionalInput(inputs, 8).data, outputs[0].data});
  ForCudaFloat(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    ForChannels(context, cut.channels,
                GradFromSums<W>{CudaData<const W>(inputs[2]),
                                CudaData<const W>(inputs[3]),
                                CudaData<const W>(inputs[4]),
                                CudaData<const double>(inputs[5]),
                                CudaData<const W>(inputs[6]),
                                CudaData<const W>(inputs[7]),
                                {Numbers<W>(context), cut.channels}});
    WriteGrads(context, cut, GradImages<T>(inputs, relu, 8), CudaData<T>(outputs[0]));
  });
}

// Images in one order; numbers of channels not in 16 bits.
bool Supports(const OpCall& call) {
  const TensorType& image = call.In(0);
  const auto fits = [&](const TensorType& t) {
    return t.ndim() == 1 ? SizeOf(t.dtype) > 2 : SameOrder(t, image);
  };
  return std::ranges::all_of(call.inputs,
                             [&](const auto& in) { return !in.has_value() || fits(*in); }) &&
         std::ranges::all_of(call.outputs, fits);
}

KernelRow Row(const char* op, int64_t (*workspace)(const OpCall&, const void*), KernelFn fn) {
  KernelRow row = CudaRow(op, fn);
  row.supports = Supports;
  row.workspace_bytes = workspace;
  return row;
}

}  // namespace

std::vector<KernelRow> BatchNormCudaKernels() {
  KernelRow moments = CudaRow("batch_norm_moments", MomentsKernel);
  moments.dtypes = kReferenceTypes;
  return {moments,
          Row("batch_norm", Workspace, BatchNormKernel),
          Row("batch_norm_grad", Workspace, BatchNormGradKernel),
          Row("batch_norm_inference", NumbersWorkspace, InferenceKernel),
          Row("batch_norm_inference_grad", Workspace, InferenceGradKernel),
          Row("batch_norm_stats", Workspace, StatsKernel),
          Row("batch_norm_apply", NumbersWorkspace, ApplyKernel),
          Row("batch_norm_grad_stats", Workspace, GradStatsKernel),
          Row("batch_norm_grad_apply", NumbersWorkspace, GradApplyKernel)};
}

}  // namespace capstan
