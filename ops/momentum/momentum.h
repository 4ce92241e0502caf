// Gradient descent with momentum, in Paddle's and PyTorch's form (no dampening):
//   g' = grad_scale * g + weight_decay * w,  v' = momentum * v + g',
//   w' = w - lr * v', or with Nesterov's look-ahead w - lr * (g' + momentum * v').
// The decay is coupled and added after clipping (grad_scale).
//
//   momentum_update(w, g, v, lr, grad_scale){momentum=0.9, weight_decay=0.0001}
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct MomentumUpdateAttrs {
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
  double lr_factor = 1;

  static constexpr auto Fields() {
    return std::array{
        Field<&MomentumUpdateAttrs::momentum>("momentum", "share of the velocity that is kept"),
        Field<&MomentumUpdateAttrs::weight_decay>("weight_decay",
                                                  "share of w added to its gradient"),
        Field<&MomentumUpdateAttrs::nesterov>("nesterov", "step with the next velocity"),
        Field<&MomentumUpdateAttrs::lr_factor>("lr_factor", "factor of the learning rate")};
  }
};

extern const OpDef kMomentumUpdate;

std::vector<const OpDef*> MomentumRows();
std::vector<KernelRow> MomentumReferenceKernels();
std::vector<KernelRow> MomentumFastKernels();
std::vector<KernelRow> MomentumCudaKernels();  // in builds with CUDA

}  // namespace capstan
