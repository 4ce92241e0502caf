// The update of one element; both kernels are loops over it.
//
//   const SgdStep<float> step(inputs, attrs);
//   w[i] = step(w[i], g[i]);
#pragma once

#include "ops/sgd/sgd.h"
#include "ops/sgd/update_row.h"

namespace capstan {

template <typename T>
struct SgdStep {
  T lr, scale, decay;

  // `inputs` of a sgd_update.
  SgdStep(std::span<const TensorView> inputs, const AnyStruct& any)
      : SgdStep(any.As<SgdUpdateAttrs>(), ScalarOf(inputs[2]),
                inputs.size() > 3 ? ScalarOf(inputs[3]) : 1) {}
  constexpr SgdStep(const SgdUpdateAttrs& attrs, double rate, double grad_scale)
      : lr(static_cast<T>(rate * attrs.lr_factor)),
        scale(static_cast<T>(grad_scale)),
        decay(static_cast<T>(attrs.weight_decay)) {}

  constexpr T operator()(T w, T g) const { return w - lr * (scale * g + decay * w); }
};

}  // namespace capstan
