// Reference kernels: plain loops channel by channel, computing in double.
#include <algorithm>
#include <cmath>

#include "engine/kernel/strided.h"
#include "ops/batch_norm/norm_call.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename F>
void ForEachOfChannel(const Shape& shape, int64_t c, F&& f) {
  Shape channel = shape;
  channel[1] = 1;
  ForEachIndex(channel, [&](Index i) {
    i[1] = c;
    f(i);
  });
}

// Written so that a NaN passes.
double MaxZero(double v) { return v < 0 ? 0 : v; }

struct Moments {
  double mean = 0;
  double variance = 0;  // biased
};

template <typename T>
Moments MomentsOfChannel(const Strided<const T>& x, const Shape& shape, int64_t c) {
  const auto count = static_cast<double>(ValuesPerChannel(shape));
  Moments m;
  ForEachOfChannel(shape, c, [&](const Index& i) { m.mean += double(x(i)); });
  m.mean /= count;
  ForEachOfChannel(shape, c, [&](const Index& i) {
    const double d = double(x(i)) - m.mean;
    m.variance += d * d;
  });
  m.variance /= count;
  return m;
}

template <typename T>
double Moved(T old, double batch, double momentum) {
  return momentum * double(old) + (1 - momentum) * batch;
}

double Unbiased(double variance, double count) {
  return variance * count / std::max(count - 1, 1.0);
}

// y = (x - mean) * factor + bias (+ residual), then relu, for one channel.
template <typename T>
struct Affine {
  Strided<const T> x, residual;
  Strided<T> y;
  bool relu;

  void Run(const Shape& shape, int64_t c, double mean, double factor, double bias) const {
    ForEachOfChannel(shape, c, [&](const Index& i) {
      double v = (double(x(i)) - mean) * factor + bias;
      if (residual.present()) v += double(residual(i));
      y(i) = static_cast<T>(relu ? MaxZero(v) : v);
    });
  }
};

TensorView OptionalInput(Views inputs, size_t i) {
  return i < inputs.size() ? inputs[i] : TensorView{};
}

void BatchNormKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormAttrs>();
  const Shape& shape = inputs[0].type.shape;
  const auto count = static_cast<double>(ValuesPerChannel(shape));
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), scale(inputs[1]), bias(inputs[2]), old_mean(inputs[3]),
        old_var(inputs[4]);
    const Strided<T> mean(outputs[1]), invstd(outputs[2]), new_mean(outputs[3]),
        new_var(outputs[4]);
    const Affine<T> affine{x, Strided<const T>(OptionalInput(inputs, 5)), Strided<T>(outputs[0]),
                           attrs.relu};
    for (int64_t c = 0; c < shape[1]; ++c) {
      const Moments m = MomentsOfChannel(x, shape, c);
      const double inverse = 1 / std::sqrt(m.variance + attrs.epsilon);
      affine.Run(shape, c, m.mean, inverse * double(scale(c)), double(bias(c)));
      mean(c) = static_cast<T>(m.mean);
      invstd(c) = static_cast<T>(inverse);
      new_mean(c) = static_cast<T>(Moved(old_mean(c), m.mean, attrs.momentum));
      new_var(c) = static_cast<T>(Moved(old_var(c), Unbiased(m.variance, count), attrs.momentum));
    }
  });
}

// dy, or zero where relu cut.
template <typename T>
struct MaskedGrad {
  Strided<const T> dy, y;
  bool relu;
  double operator()(const Index& i) const { return relu && !(y(i) > T{0}) ? 0 : double(dy(i)); }
};

struct GradSums {
  double dy = 0;
  double dy_centred = 0;  // of dy * (x - mean)
};

template <typename T>
GradSums SumGrads(const MaskedGrad<T>& dy, const Strided<const T>& x, double mean,
                  const Shape& shape, int64_t c) {
  GradSums sums;
  ForEachOfChannel(shape, c, [&](const Index& i) {
    sums.dy += dy(i);
    sums.dy_centred += dy(i) * (double(x(i)) - mean);
  });
  return sums;
}

void BatchNormGradKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const bool relu = any.As<BatchNormGradAttrs>().relu;
  const Shape& shape = inputs[1].type.shape;
  const auto count = static_cast<double>(ValuesPerChannel(shape));
  ForFloat(inputs[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MaskedGrad<T> dy{Strided<const T>(inputs[0]), Strided<const T>(OptionalInput(inputs, 5)),
                           relu};
    const Strided<const T> x(inputs[1]), scale(inputs[2]), mean(inputs[3]), invstd(inputs[4]);
    const Strided<T> dx(outputs[0]), dscale(outputs[1]), dbias(outputs[2]);
    for (int64_t c = 0; c < shape[1]; ++c) {
      const double m = double(mean(c)), r = double(invstd(c));
      const GradSums sums = SumGrads(dy, x, m, shape, c);
      const double along = sums.dy_centred * r * r / count;
      const double factor = double(scale(c)) * r;
      ForEachOfChannel(shape, c, [&](const Index& i) {
        const double centred = double(x(i)) - m;
        dx(i) = static_cast<T>(factor * (dy(i) - sums.dy / count - centred * along));
      });
      dscale(c) = static_cast<T>(sums.dy_centred * r);
      dbias(c) = static_cast<T>(sums.dy);
    }
  });
}

void InferenceKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormInferenceAttrs>();
  const Shape& shape = inputs[0].type.shape;
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), scale(inputs[1]), bias(inputs[2]), mean(inputs[3]),
        var(inputs[4]);
    const Affine<T> affine{x, Strided<const T>(OptionalInput(inputs, 5)), Strided<T>(outputs[0]),
                           attrs.relu};
    for (int64_t c = 0; c < shape[1]; ++c) {
      const double invstd = 1 / std::sqrt(double(var(c)) + attrs.epsilon);
      affine.Run(shape, c, double(mean(c)), invstd * double(scale(c)), double(bias(c)));
    }
  });
}

void InferenceGradKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const double epsilon = any.As<BatchNormInferenceGradAttrs>().epsilon;
  const Shape& shape = inputs[1].type.shape;
  ForFloat(inputs[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MaskedGrad<T> dy{Strided<const T>(inputs[0]), Strided<const T>(TensorView{}), false};
    const Strided<const T> x(inputs[1]), scale(inputs[2]), mean(inputs[3]), var(inputs[4]);
    const Strided<T> dx(outputs[0]), dscale(outputs[1]), dbias(outputs[2]);
    for (int64_t c = 0; c < shape[1]; ++c) {
      const double invstd = 1 / std::sqrt(double(var(c)) + epsilon);
      const GradSums sums = SumGrads(dy, x, double(mean(c)), shape, c);
      const double factor = double(scale(c)) * invstd;
      ForEachOfChannel(shape, c, [&](const Index& i) { dx(i) = static_cast<T>(dy(i) * factor); });
      dscale(c) = static_cast<T>(sums.dy_centred * invstd);
      dbias(c) = static_cast<T>(sums.dy);
    }
  });
}

void StatsKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
  const Shape& shape = inputs[0].type.shape;
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<double> count(outputs[0]), sum(outputs[1]), squares(outputs[2]);
    for (int64_t c = 0; c < shape[1]; ++c) {
      double s = 0, q = 0;
      ForEachOfChannel(shape, c, [&](const Index& i) {
        const double v = double(x(i));
        s += v;
        q += v * v;
      });
      count(c) = static_cast<double>(ValuesPerChannel(shape));
      sum(c) = s;
      squares(c) = q;
    }
  });
}

void MomentsKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BatchNormMomentsAttrs>();
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> old_mean(inputs[0]), old_var(inputs[1]);
    const Strided<const double> count(inputs[2]), sum(inputs[3]), squares(inputs[4]);
    const Strided<T> mean(outputs[0]), invstd(outputs[1]), new_mean(outputs[2]),
        new_var(outputs[3]);
    for (int64_t c = 0; c < inputs[0].type.count(); ++c) {
      const double m = sum(c) / count(c);
      const double variance = MaxZero(squares(c) / count(c) - m * m);
      mean(c) = static_cast<T>(m);
      invstd(c) = static_cast<T>(1 / std::sqrt(variance + attrs.epsilon));
      new_mean(c) = static_cast<T>(Moved(old_mean(c), m, attrs.momentum));
      new_var(c) = static_cast<T>(Moved(old_var(c), Unbiased(variance, count(c)), attrs.momentum));
    }
  });
}

void ApplyKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const Shape& shape = inputs[0].type.shape;
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), scale(inputs[1]), bias(inputs[2]), mean(inputs[3]),
        invstd(inputs[4]);
    const Affine<T> affine{x, Strided<const T>(OptionalInput(inputs, 5)), Strided<T>(outputs[0]),
                           any.As<BatchNormPartAttrs>().relu};
    for (int64_t c = 0; c < shape[1]; ++c) {
      affine.Run(shape, c, double(mean(c)), double(invstd(c)) * double(scale(c)), double(bias(c)));
    }
  });
}

void GradStatsKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const bool relu = any.As<BatchNormPartAttrs>().relu;
  const Shape& shape = inputs[1].type.shape;
  ForFloat(inputs[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MaskedGrad<T> dy{Strided<const T>(inputs[0]), Strided<const T>(OptionalInput(inputs, 4)),
                           relu};
    const Strided<const T> x(inputs[1]), mean(inputs[2]), invstd(inputs[3]);
    const Strided<T> sum_dy(outputs[0]), sum_dy_xhat(outputs[1]);
    for (int64_t c = 0; c < shape[1]; ++c) {
      const GradSums sums = SumGrads(dy, x, double(mean(c)), shape, c);
      sum_dy(c) = static_cast<T>(sums.dy);
      sum_dy_xhat(c) = static_cast<T>(sums.dy_centred * double(invstd(c)));
    }
  });
}

void GradApplyKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct& any) {
  const bool relu = any.As<BatchNormPartAttrs>().relu;
  const Shape& shape = inputs[1].type.shape;
  ForFloat(inputs[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const MaskedGrad<T> dy{Strided<const T>(inputs[0]), Strided<const T>(OptionalInput(inputs, 8)),
                           relu};
    const Strided<const T> x(inputs[1]), scale(inputs[2]), mean(inputs[3]), invstd(inputs[4]);
    const Strided<const double> count(inputs[5]);
    const Strided<const T> sum_dy(inputs[6]), sum_dy_xhat(inputs[7]);
    const Strided<T> dx(outputs[0]);
    for (int64_t c = 0; c < shape[1]; ++c) {
      const double m = double(mean(c)), r = double(invstd(c));
      const double along = double(sum_dy_xhat(c)) * r / count(c);
      ForEachOfChannel(shape, c, [&](const Index& i) {
        const double centred = double(x(i)) - m;
        dx(i) = static_cast<T>(double(scale(c)) * r *
                               (dy(i) - double(sum_dy(c)) / count(c) - centred * along));
      });
    }
  });
}

}  // namespace

std::vector<KernelRow> BatchNormReferenceKernels() {
  return {{.op = "batch_norm", .fn = BatchNormKernel},
          {.op = "batch_norm_grad", .fn = BatchNormGradKernel},
          {.op = "batch_norm_inference", .fn = InferenceKernel},
          {.op = "batch_norm_inference_grad", .fn = InferenceGradKernel},
          {.op = "batch_norm_stats", .fn = StatsKernel},
          {.op = "batch_norm_moments", .fn = MomentsKernel},
          {.op = "batch_norm_apply", .fn = ApplyKernel},
          {.op = "batch_norm_grad_stats", .fn = GradStatsKernel},
          {.op = "batch_norm_grad_apply", .fn = GradApplyKernel}};
}

}  // namespace capstan
