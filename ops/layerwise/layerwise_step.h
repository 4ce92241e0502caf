// Both optimizers in the two passes that all kernels make over a segment: Prepare, element by
// element, gives the two squares whose sums are norms; with them RateOf gives the segment's rate,
// and Apply the new weights. What is constexpr works on a GPU too.
//
//   const LambStep<float> step(buckets, factors, lr, iteration, grad_scale);
//   for (i in segment) step.Prepare(i, &weights, &steps);      // sums of squares
//   const float rate = step.RateOf(weights, steps);
//   for (i in segment) step.Apply(i, rate);
//
// Outputs may lie over their inputs: Prepare reads no weight that Apply has written.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/layerwise/layerwise.h"
#include "ops/sgd/update_row.h"

namespace capstan {

// A part of a segment.
struct SegmentBlock {
  int64_t segment, begin, end;
};

// All segments in order, in blocks of at most `size` elements.
inline std::vector<SegmentBlock> CutSegments(const std::vector<int64_t>& ends, int64_t size) {
  std::vector<SegmentBlock> blocks;
  int64_t begin = 0, segment = 0;
  for (const int64_t end : ends) {
    for (; begin < end; begin = blocks.back().end) {
      blocks.push_back({segment, begin, std::min(end, begin + size)});
    }
    ++segment;
  }
  return blocks;
}

template <typename T>
class LambStep {
 public:
  using Attrs = LambUpdateAttrs;

  // Inputs of the row.
  static constexpr size_t kLr = 4, kIteration = 5, kScale = 6;

  struct Buckets {
    const T *w, *g, *m, *v;
    T *new_w, *new_m, *new_v;

    Buckets(std::span<const TensorView> outputs, std::span<const TensorView> inputs)
        : w(inputs[0].Data<T>()),
          g(inputs[1].Data<T>()),
          m(inputs[2].Data<T>()),
          v(inputs[3].Data<T>()),
          new_w(outputs[0].Data<T>()),
          new_m(outputs[1].Data<T>()),
          new_v(outputs[2].Data<T>()) {}
  };
  struct Factors {
    double beta1, beta2, epsilon, weight_decay;
    bool adapt;

    explicit Factors(const LambUpdateAttrs& a)
        : beta1(a.beta1),
          beta2(a.beta2),
          epsilon(a.epsilon),
          weight_decay(a.weight_decay),
          adapt(a.adapt) {}
  };

  constexpr LambStep(const Buckets& b, const Factors& f, double lr, int64_t iteration, double scale)
      : b_(b),
        beta1_(static_cast<T>(f.beta1)),
        beta2_(static_cast<T>(f.beta2)),
        rest1_(static_cast<T>(1 - f.beta1)),
        rest2_(static_cast<T>(1 - f.beta2)),
        epsilon_(static_cast<T>(f.epsilon)),
        decay_(static_cast<T>(f.weight_decay)),
        scale_(static_cast<T>(scale)),
        mean_(static_cast<T>(1 / (1 - std::pow(f.beta1, static_cast<double>(iteration + 1))))),
        root_(static_cast<T>(1 /
                             std::sqrt(1 - std::pow(f.beta2, static_cast<double>(iteration + 1))))),
        lr_(lr),
        adapt_(f.adapt) {}

  constexpr void Prepare(int64_t i, double* weights, double* steps) const {
    const T gradient = scale_ * b_.g[i], w = b_.w[i];
    const T m = beta1_ * b_.m[i] + rest1_ * gradient;
    const T v = beta2_ * b_.v[i] + rest2_ * gradient * gradient;
    const T step = StepOf(w, m, v);
    b_.new_m[i] = m;
    b_.new_v[i] = v;
    *weights += static_cast<double>(w) * static_cast<double>(w);
    *steps += static_cast<double>(step) * static_cast<double>(step);
  }

  constexpr T RateOf(double weights, double steps) const {
    const bool whole = !adapt_ || weights == 0 || steps == 0;
    return static_cast<T>(whole ? lr_ : lr_ * std::sqrt(weights) / std::sqrt(steps));
  }

  constexpr void Apply(int64_t i, T rate) const {
    b_.new_w[i] = b_.w[i] - rate * StepOf(b_.w[i], b_.new_m[i], b_.new_v[i]);
  }

 private:
  constexpr T StepOf(T w, T m, T v) const {
    return mean_ * m / (std::sqrt(v) * root_ + epsilon_) + decay_ * w;
  }

  Buckets b_;
  T beta1_, beta2_, rest1_, rest2_, epsilon_, decay_, scale_;
  T mean_, root_;  // bias corrections
  double lr_;
  bool adapt_;
};

template <typename T>
class LarsStep {
 public:
  using Attrs = LarsUpdateAttrs;

  // Inputs of the row; it does not ask for the iteration.
  static constexpr size_t kLr = 3, kIteration = 0, kScale = 4;

  struct Buckets {
    const T *w, *g, *v;
    T *new_w, *new_v;

    Buckets(std::span<const TensorView> outputs, std::span<const TensorView> inputs)
        : w(inputs[0].Data<T>()),
          g(inputs[1].Data<T>()),
          v(inputs[2].Data<T>()),
          new_w(outputs[0].Data<T>()),
          new_v(outputs[1].Data<T>()) {}
  };
  struct Factors {
    double momentum, trust, epsilon, weight_decay;
    bool adapt;

    explicit Factors(const LarsUpdateAttrs& a)
        : momentum(a.momentum),
          trust(a.trust),
          epsilon(a.epsilon),
          weight_decay(a.weight_decay),
          adapt(a.adapt) {}
  };

  constexpr LarsStep(const Buckets& b, const Factors& f, double lr, int64_t, double scale)
      : b_(b),
        f_(f),
        momentum_(static_cast<T>(f.momentum)),
        decay_(static_cast<T>(f.weight_decay)),
        scale_(static_cast<T>(scale)),
        lr_(lr) {}

  constexpr void Prepare(int64_t i, double* weights, double* gradients) const {
    const T gradient = scale_ * b_.g[i], w = b_.w[i];
    *weights += static_cast<double>(w) * static_cast<double>(w);
    *gradients += static_cast<double>(gradient) * static_cast<double>(gradient);
  }

  constexpr T RateOf(double weights, double gradients) const {
    if (!f_.adapt || weights == 0 || gradients == 0) return static_cast<T>(lr_);
    const double w = std::sqrt(weights), g = std::sqrt(gradients);
    return static_cast<T>(lr_ * f_.trust * w / (g + f_.weight_decay * w + f_.epsilon));
  }

  constexpr void Apply(int64_t i, T rate) const {
    const T w = b_.w[i];
    const T velocity = momentum_ * b_.v[i] + rate * (scale_ * b_.g[i] + decay_ * w);
    b_.new_v[i] = velocity;
    b_.new_w[i] = w - velocity;
  }

 private:
  Buckets b_;
  Factors f_;
  T momentum_, decay_, scale_;
  double lr_;
};

// The step of a call whose scalars lie in host memory.
template <typename Step>
Step StepOf(std::span<const TensorView> outputs, std::span<const TensorView> inputs,
            const typename Step::Attrs& attrs) {
  constexpr bool kCounts = Step::kIteration > 0;
  const int64_t iteration = kCounts ? *inputs[Step::kIteration].template Data<int64_t>() : 0;
  const double scale = inputs.size() > Step::kScale ? ScalarOf(inputs[Step::kScale]) : 1;
  return Step(typename Step::Buckets(outputs, inputs), typename Step::Factors(attrs),
              ScalarOf(inputs[Step::kLr]), iteration, scale);
}

}  // namespace capstan
