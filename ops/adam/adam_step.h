// The update of one element; both kernels are loops over it.
//
//   const AdamStep<float> step(inputs, attrs, AdamDecay::kCoupled);
//   step(w[i], g[i], m[i], v[i], &new_w[i], &new_m[i], &new_v[i]);
#pragma once

#include <cmath>

#include "ops/adam/adam.h"
#include "ops/sgd/update_row.h"

namespace capstan {

enum class AdamDecay : uint8_t { kCoupled, kDecoupled };

template <typename T>
struct AdamStep {
  T beta1, beta2, rest1, rest2, epsilon, scale;
  T decay;      // coupled: share of w added to the gradient
  T keep;       // decoupled: what w is multiplied by first
  T step_size;  // lr / (1 - beta1^t)
  T root;       // sqrt(1 - beta2^t)

  // `inputs` of an update.
  AdamStep(std::span<const TensorView> inputs, const AnyStruct& any, AdamDecay kind)
      : AdamStep(any.As<AdamUpdateAttrs>(), kind, ScalarOf(inputs[4]), *inputs[5].Data<int64_t>(),
                 inputs.size() > 6 ? ScalarOf(inputs[6]) : 1) {}
  constexpr AdamStep(const AdamUpdateAttrs& attrs, AdamDecay kind, double rate, int64_t iteration,
                     double grad_scale) {
    const double lr = rate * attrs.lr_factor;
    const double t = static_cast<double>(iteration + 1);
    const bool coupled = kind == AdamDecay::kCoupled;
    beta1 = static_cast<T>(attrs.beta1);
    beta2 = static_cast<T>(attrs.beta2);
    rest1 = static_cast<T>(1 - attrs.beta1);
    rest2 = static_cast<T>(1 - attrs.beta2);
    epsilon = static_cast<T>(attrs.epsilon);
    scale = static_cast<T>(grad_scale);
    decay = coupled ? static_cast<T>(attrs.weight_decay) : T{0};
    keep = coupled ? T{1} : static_cast<T>(1 - lr * attrs.weight_decay);
    step_size = static_cast<T>(lr / (1 - std::pow(attrs.beta1, t)));
    root = static_cast<T>(std::sqrt(1 - std::pow(attrs.beta2, t)));
  }

  constexpr void operator()(T w, T g, T m, T v, T* new_w, T* new_m, T* new_v) const {
    const T gradient = scale * g + decay * w;
    const T mean = beta1 * m + rest1 * gradient;
    const T square = beta2 * v + rest2 * gradient * gradient;
    *new_w = keep * w - step_size * (mean / (std::sqrt(square) / root + epsilon));
    *new_m = mean;
    *new_v = square;
  }
};

}  // namespace capstan
