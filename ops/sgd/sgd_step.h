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
  SgdStep(std::span<const TensorView> inputs, const AnyStruct& any) {
    const auto& attrs = any.As<SgdUpdateAttrs>();
    lr = static_cast<T>(ScalarOf(inputs[2]) * attrs.lr_factor);
    scale = inputs.size() > 3 ? static_cast<T>(ScalarOf(inputs[3])) : T{1};
    decay = static_cast<T>(attrs.weight_decay);
  }

  T operator()(T w, T g) const { return w - lr * (scale * g + decay * w); }
};

}  // namespace capstan
