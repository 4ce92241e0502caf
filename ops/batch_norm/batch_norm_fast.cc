// Kernels over rows of channels ([n, c] and channels_last images): one pass for the sums, one for
// the result. Statistics are of x minus a guess of the mean, so a large mean loses nothing.
#include <algorithm>
#include <cmath>

#include "ops/batch_norm/norm_call.h"
#include "ops/bias_add/channel_rows.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// The image argument is output 0 of all these rows.
bool SupportsRows(const OpCall& call) {
  if (!IsInnermost(call.Out(0), 1) || !InOneOrder(call)) return false;
  return std::ranges::all_of(
      call.inputs, [](const auto& in) { return !in.has_value() || in->dtype == DType::kF32; });
}

struct Sizes {
  int64_t rows, channels;
};

Sizes SizesOf(const TensorType& image) { return {image.count() / image.shape[1], image.shape[1]}; }

// Workspace: four floats per channel, then that of the sums.
int64_t CoefficientBytes(int64_t channels) { return (4 * channels * 4 + 63) / 64 * 64; }

int64_t Workspace(const OpCall& call, const void*) {
  const Sizes s = SizesOf(call.Out(0));
  return CoefficientBytes(s.channels) + SumRowsBytes(2, s.rows, s.channels);
}

int64_t CoefficientWorkspace(const OpCall& call, const void*) {
  return CoefficientBytes(SizesOf(call.Out(0)).channels);
}

void* SumsWorkspace(const KernelContext& context, int64_t channels) {
  return static_cast<char*>(context.workspace) + CoefficientBytes(channels);
}

const float* OptionalData(Views views, size_t i) {
  return i < views.size() && views[i].data != nullptr ? views[i].Data<float>() : nullptr;
}

// The mean of up to kRowsPerBlock rows from all over the tensor.
void GuessMeans(const float* x, Sizes s, float* guess) {
  const int64_t taken = std::min(s.rows, kRowsPerBlock);
  std::fill_n(guess, s.channels, 0.f);
  for (int64_t i = 0; i < taken; ++i) {
    const float* row = x + s.rows * i / taken * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) guess[c] += row[c];
  }
  for (int64_t c = 0; c < s.channels; ++c) guess[c] /= static_cast<float>(taken);
}

// y = (x - mean) * factor + bias (+ residual), then relu.
struct Affine {
  const float *x, *residual;
  float* y;
  const float *mean, *factor, *bias;
};

template <bool kRelu, bool kResidual>
void ApplyRows(const KernelContext& context, const Affine& a, Sizes s) {
  ParallelFor(context, s.rows, RowGrain(s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * s.channels;
#pragma omp simd
      for (int64_t c = 0; c < s.channels; ++c) {
        float v = (a.x[at + c] - a.mean[c]) * a.factor[c] + a.bias[c];
        if constexpr (kResidual) v += a.residual[at + c];
        // Written so that a NaN passes.
        if constexpr (kRelu) v = v < 0.f ? 0.f : v;
        a.y[at + c] = v;
      }
    }
  });
}

void Apply(const KernelContext& context, const Affine& a, Sizes s, bool relu) {
  if (a.residual != nullptr) {
    return relu ? ApplyRows<true, true>(context, a, s) : ApplyRows<false, true>(context, a, s);
  }
  return relu ? ApplyRows<true, false>(context, a, s) : ApplyRows<false, false>(context, a, s);
}

void BatchNormKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormAttrs>();
  const Sizes s = SizesOf(inputs[0].type);
  const float* x = inputs[0].Data<float>();
  const float *scale = inputs[1].Data<float>(), *bias = inputs[2].Data<float>();
  const float *old_mean = inputs[3].Data<float>(), *old_var = inputs[4].Data<float>();
  float *mean = outputs[1].Data<float>(), *invstd = outputs[2].Data<float>();
  float *new_mean = outputs[3].Data<float>(), *new_var = outputs[4].Data<float>();
  float* const guess = static_cast<float*>(context.workspace);
  float *const factor = guess + s.channels, *const offset = factor + s.channels;
  GuessMeans(x, s, guess);
  const double* sums = SumRows<2>(context, s.rows, s.channels, SumsWorkspace(context, s.channels),
                                  [&](int64_t row, float* block) {
                                    const float* from = x + row * s.channels;
                                    float* squares = block + s.channels;
#pragma omp simd
                                    for (int64_t c = 0; c < s.channels; ++c) {
                                      const float d = from[c] - guess[c];
                                      block[c] += d;
                                      squares[c] += d * d;
                                    }
                                  });
  const auto count = static_cast<double>(s.rows);
  const double kept = attrs.momentum;
  for (int64_t c = 0; c < s.channels; ++c) {
    const double d = sums[c] / count;
    const double batch_mean = double(guess[c]) + d;
    double var = sums[s.channels + c] / count - d * d;
    var = var < 0 ? 0 : var;
    const double inverse = 1 / std::sqrt(var + attrs.epsilon);
    mean[c] = static_cast<float>(batch_mean);
    invstd[c] = static_cast<float>(inverse);
    factor[c] = static_cast<float>(inverse * double(scale[c]));
    // What the rounding of the mean took away comes back with the bias.
    offset[c] = static_cast<float>(double(bias[c]) - (batch_mean - double(mean[c])) * factor[c]);
    new_mean[c] = static_cast<float>(kept * double(old_mean[c]) + (1 - kept) * batch_mean);
    const double unbiased = var * count / (count - 1);
    new_var[c] = static_cast<float>(kept * double(old_var[c]) + (1 - kept) * unbiased);
  }
  const Affine affine = {x,     OptionalData(inputs, 5), outputs[0].Data<float>(), mean, factor,
                         offset};
  Apply(context, affine, s, attrs.relu);
}

void InferenceKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormInferenceAttrs>();
  const Sizes s = SizesOf(inputs[0].type);
  const float *scale = inputs[1].Data<float>(), *var = inputs[4].Data<float>();
  float* const factor = static_cast<float*>(context.workspace);
  for (int64_t c = 0; c < s.channels; ++c) {
    factor[c] = static_cast<float>(double(scale[c]) / std::sqrt(double(var[c]) + attrs.epsilon));
  }
  const Affine affine = {inputs[0].Data<float>(),
                         OptionalData(inputs, 5),
                         outputs[0].Data<float>(),
                         inputs[3].Data<float>(),
                         factor,
                         inputs[2].Data<float>()};
  Apply(context, affine, s, attrs.relu);
}

// dx = factor * (dy - along_one - (x - mean) * along_x); dy is masked by y where relu is fused in.
struct Backward {
  const float *dy, *x, *y;
  float* dx;
  const float *mean, *factor, *along_one, *along_x;
};

template <bool kRelu>
float GradAt(const Backward& b, int64_t i) {
  // Read in any case: a load under a condition would not be vectorised.
  const float dy = b.dy[i];
  if constexpr (kRelu) return b.y[i] > 0.f ? dy : 0.f;
  return dy;
}

// Sums per channel of dy and of dy * (x - mean).
template <bool kRelu>
const double* SumGrads(const KernelContext& context, const Backward& b, Sizes s) {
  return SumRows<2>(context, s.rows, s.channels, SumsWorkspace(context, s.channels),
                    [&](int64_t row, float* block) {
                      const int64_t at = row * s.channels;
                      float* centred = block + s.channels;
#pragma omp simd
                      for (int64_t c = 0; c < s.channels; ++c) {
                        const float g = GradAt<kRelu>(b, at + c);
                        block[c] += g;
                        centred[c] += g * (b.x[at + c] - b.mean[c]);
                      }
                    });
}

template <bool kRelu>
void WriteGrads(const KernelContext& context, const Backward& b, Sizes s) {
  ParallelFor(context, s.rows, RowGrain(s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * s.channels;
#pragma omp simd
      for (int64_t c = 0; c < s.channels; ++c) {
        const float centred = b.x[at + c] - b.mean[c];
        b.dx[at + c] =
            b.factor[c] * (GradAt<kRelu>(b, at + c) - b.along_one[c] - centred * b.along_x[c]);
      }
    }
  });
}

// Both backward rows; `invstd_of(c)` gives the inverse deviation and `share` how much of the mean
// gradients is taken out of dx: 1 / count, or 0 where the statistics are constants.
template <typename InvStd>
void RunBackward(KernelContext& context, Views outputs, Views inputs, bool relu, double share,
                 const InvStd& invstd_of) {
  const Sizes s = SizesOf(inputs[1].type);
  const float* scale = inputs[2].Data<float>();
  float *dscale = outputs[1].Data<float>(), *dbias = outputs[2].Data<float>();
  float* const factor = static_cast<float*>(context.workspace);
  float *const along_one = factor + s.channels, *const along_x = along_one + s.channels;
  const Backward b = {inputs[0].Data<float>(),
                      inputs[1].Data<float>(),
                      OptionalData(inputs, 5),
                      outputs[0].Data<float>(),
                      inputs[3].Data<float>(),
                      factor,
                      along_one,
                      along_x};
  const double* sums = relu ? SumGrads<true>(context, b, s) : SumGrads<false>(context, b, s);
  for (int64_t c = 0; c < s.channels; ++c) {
    const double invstd = invstd_of(c);
    const double dy = sums[c], dy_xhat = sums[s.channels + c] * invstd;
    dbias[c] = static_cast<float>(dy);
    dscale[c] = static_cast<float>(dy_xhat);
    factor[c] = static_cast<float>(double(scale[c]) * invstd);
    along_one[c] = static_cast<float>(dy * share);
    along_x[c] = static_cast<float>(dy_xhat * invstd * share);
  }
  relu ? WriteGrads<true>(context, b, s) : WriteGrads<false>(context, b, s);
}

void BatchNormGradKernel(KernelContext& context, Views outputs, Views inputs,
                         const AnyStruct& any) {
  const float* invstd = inputs[4].Data<float>();
  const double share = 1 / static_cast<double>(ValuesPerChannel(inputs[1].type.shape));
  RunBackward(context, outputs, inputs, any.As<BatchNormGradAttrs>().relu, share,
              [&](int64_t c) { return double(invstd[c]); });
}

void InferenceGradKernel(KernelContext& context, Views outputs, Views inputs,
                         const AnyStruct& any) {
  const float* var = inputs[4].Data<float>();
  const double epsilon = any.As<BatchNormInferenceGradAttrs>().epsilon;
  RunBackward(context, outputs, inputs, false, 0,
              [&](int64_t c) { return 1 / std::sqrt(double(var[c]) + epsilon); });
}

KernelRow Fast(const char* op, int64_t (*workspace)(const OpCall&, const void*), KernelFn fn) {
  return {.op = op,
          .impl = "fast",
          .priority = 10,
          .dtypes = {DType::kF32},
          .supports = SupportsRows,
          .workspace_bytes = workspace,
          .fn = fn};
}

}  // namespace

std::vector<KernelRow> BatchNormFastKernels() {
  return {Fast("batch_norm", Workspace, BatchNormKernel),
          Fast("batch_norm_grad", Workspace, BatchNormGradKernel),
          Fast("batch_norm_inference", CoefficientWorkspace, InferenceKernel),
          Fast("batch_norm_inference_grad", Workspace, InferenceGradKernel)};
}

}  // namespace capstan
