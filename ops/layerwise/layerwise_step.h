// Both optimizers in the two passes that both kernels make over a segment: Prepare, element by
// element, gives the two squares whose sums are norms; with them RateOf gives the segment's rate,
// and Apply the new weights.
//
//   const LambStep<float> step(inputs, outputs, attrs);
//   for (i in segment) step.Prepare(i, &weights, &steps);      // sums of squares
//   const float rate = step.RateOf(weights, steps);
//   for (i in segment) step.Apply(i, rate);
//
// Outputs may lie over their inputs: Prepare reads no weight that Apply has written.
#pragma once

#include <cmath>

#include "ops/layerwise/layerwise.h"
#include "ops/sgd/update_row.h"

namespace capstan {

template <typename T>
class LambStep {
 public:
  using Attrs = LambUpdateAttrs;

  LambStep(std::span<const TensorView> outputs, std::span<const TensorView> inputs,
           const LambUpdateAttrs& attrs)
      : w_(inputs[0].Data<T>()),
        g_(inputs[1].Data<T>()),
        m_(inputs[2].Data<T>()),
        v_(inputs[3].Data<T>()),
        new_w_(outputs[0].Data<T>()),
        new_m_(outputs[1].Data<T>()),
        new_v_(outputs[2].Data<T>()),
        beta1_(static_cast<T>(attrs.beta1)),
        beta2_(static_cast<T>(attrs.beta2)),
        rest1_(static_cast<T>(1 - attrs.beta1)),
        rest2_(static_cast<T>(1 - attrs.beta2)),
        epsilon_(static_cast<T>(attrs.epsilon)),
        decay_(static_cast<T>(attrs.weight_decay)),
        scale_(inputs.size() > 6 ? static_cast<T>(ScalarOf(inputs[6])) : T{1}),
        lr_(ScalarOf(inputs[4])),
        adapt_(attrs.adapt) {
    const double t = static_cast<double>(*inputs[5].Data<int64_t>() + 1);
    mean_ = static_cast<T>(1 / (1 - std::pow(attrs.beta1, t)));
    root_ = static_cast<T>(1 / std::sqrt(1 - std::pow(attrs.beta2, t)));
  }

  void Prepare(int64_t i, double* weights, double* steps) const {
    const T gradient = scale_ * g_[i], w = w_[i];
    const T m = beta1_ * m_[i] + rest1_ * gradient;
    const T v = beta2_ * v_[i] + rest2_ * gradient * gradient;
    const T step = StepOf(w, m, v);
    new_m_[i] = m;
    new_v_[i] = v;
    *weights += static_cast<double>(w) * static_cast<double>(w);
    *steps += static_cast<double>(step) * static_cast<double>(step);
  }

  T RateOf(double weights, double steps) const {
    const bool whole = !adapt_ || weights == 0 || steps == 0;
    return static_cast<T>(whole ? lr_ : lr_ * std::sqrt(weights) / std::sqrt(steps));
  }

  void Apply(int64_t i, T rate) const {
    new_w_[i] = w_[i] - rate * StepOf(w_[i], new_m_[i], new_v_[i]);
  }

 private:
  T StepOf(T w, T m, T v) const {
    return mean_ * m / (std::sqrt(v) * root_ + epsilon_) + decay_ * w;
  }

  const T *w_, *g_, *m_, *v_;
  T *new_w_, *new_m_, *new_v_;
  T beta1_, beta2_, rest1_, rest2_, epsilon_, decay_, scale_;
  T mean_, root_;  // bias corrections
  double lr_;
  bool adapt_;
};

template <typename T>
class LarsStep {
 public:
  using Attrs = LarsUpdateAttrs;

  LarsStep(std::span<const TensorView> outputs, std::span<const TensorView> inputs,
           const LarsUpdateAttrs& attrs)
      : w_(inputs[0].Data<T>()),
        g_(inputs[1].Data<T>()),
        v_(inputs[2].Data<T>()),
        new_w_(outputs[0].Data<T>()),
        new_v_(outputs[1].Data<T>()),
        momentum_(static_cast<T>(attrs.momentum)),
        decay_(static_cast<T>(attrs.weight_decay)),
        scale_(inputs.size() > 4 ? static_cast<T>(ScalarOf(inputs[4])) : T{1}),
        lr_(ScalarOf(inputs[3])),
        attrs_(attrs) {}

  void Prepare(int64_t i, double* weights, double* gradients) const {
    const T gradient = scale_ * g_[i], w = w_[i];
    *weights += static_cast<double>(w) * static_cast<double>(w);
    *gradients += static_cast<double>(gradient) * static_cast<double>(gradient);
  }

  T RateOf(double weights, double gradients) const {
    if (!attrs_.adapt || weights == 0 || gradients == 0) return static_cast<T>(lr_);
    const double w = std::sqrt(weights), g = std::sqrt(gradients);
    return static_cast<T>(lr_ * attrs_.trust * w / (g + attrs_.weight_decay * w + attrs_.epsilon));
  }

  void Apply(int64_t i, T rate) const {
    const T w = w_[i];
    const T velocity = momentum_ * v_[i] + rate * (scale_ * g_[i] + decay_ * w);
    new_v_[i] = velocity;
    new_w_[i] = w - velocity;
  }

 private:
  const T *w_, *g_, *v_;
  T *new_w_, *new_v_;
  T momentum_, decay_, scale_;
  double lr_;
  const LarsUpdateAttrs& attrs_;
};

}  // namespace capstan
