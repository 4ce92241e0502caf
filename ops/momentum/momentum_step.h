// The update of one element; both kernels are loops over it.
//
//   const MomentumStep<float> step(inputs, attrs);
//   step(w[i], g[i], v[i], &new_w[i], &new_v[i]);
#pragma once

#include "ops/momentum/momentum.h"
#include "ops/sgd/update_row.h"

namespace capstan {

template <typename T>
struct MomentumStep {
  T lr, scale, momentum, decay;
  // How the step is mixed: of the gradient and of the new velocity.
  T of_gradient, of_velocity;

  // `inputs` of a momentum_update.
  MomentumStep(std::span<const TensorView> inputs, const AnyStruct& any)
      : MomentumStep(any.As<MomentumUpdateAttrs>(), ScalarOf(inputs[3]),
                     inputs.size() > 4 ? ScalarOf(inputs[4]) : 1) {}
  constexpr MomentumStep(const MomentumUpdateAttrs& attrs, double rate, double grad_scale)
      : lr(static_cast<T>(rate * attrs.lr_factor)),
        scale(static_cast<T>(grad_scale)),
        momentum(static_cast<T>(attrs.momentum)),
        decay(static_cast<T>(attrs.weight_decay)),
        of_gradient(attrs.nesterov ? T{1} : T{0}),
        of_velocity(attrs.nesterov ? momentum : T{1}) {}

  constexpr void operator()(T w, T g, T v, T* new_w, T* new_v) const {
    const T gradient = scale * g + decay * w;
    const T velocity = momentum * v + gradient;
    *new_w = w - lr * (of_gradient * gradient + of_velocity * velocity);
    *new_v = velocity;
  }
};

}  // namespace capstan
