// Stochastic gradient descent without memory: w' = w - lr * (grad_scale * g + weight_decay * w).
// The decay is coupled and added after clipping (grad_scale), as in Paddle and PyTorch.
//
//   sgd_update(w, g, lr){weight_decay=0.0001}
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct SgdUpdateAttrs {
  double weight_decay = 0;
  double lr_factor = 1;

  static constexpr auto Fields() {
    return std::array{
        Field<&SgdUpdateAttrs::weight_decay>("weight_decay", "share of w added to its gradient"),
        Field<&SgdUpdateAttrs::lr_factor>("lr_factor", "factor of the learning rate")};
  }
};

extern const OpDef kSgdUpdate;

std::vector<const OpDef*> SgdRows();
std::vector<KernelRow> SgdReferenceKernels();
std::vector<KernelRow> SgdFastKernels();
std::vector<KernelRow> SgdCudaKernels();  // in builds with CUDA

}  // namespace capstan
