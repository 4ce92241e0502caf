// Adam and AdamW in PyTorch's form (torch.optim.Adam, AdamW): with t = iteration + 1,
//   m' = beta1 * m + (1 - beta1) * g',  v' = beta2 * v + (1 - beta2) * g'^2,
//   w' = w - lr / (1 - beta1^t) * m' / (sqrt(v') / sqrt(1 - beta2^t) + epsilon).
// adam_update couples the decay: g' = grad_scale * g + weight_decay * w. adamw_update decouples it:
// g' = grad_scale * g, and w is multiplied by 1 - lr * weight_decay first.
// Sources: Kingma and Ba, ICLR 2015, algorithm 1; Loshchilov and Hutter, ICLR 2019, algorithm 2.
//
//   adamw_update(w, g, m, v, lr, iteration, grad_scale){weight_decay=0.01}
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct AdamUpdateAttrs {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double lr_factor = 1;

  static constexpr auto Fields() {
    return std::array{
        Field<&AdamUpdateAttrs::beta1>("beta1", "share of the mean gradient that is kept"),
        Field<&AdamUpdateAttrs::beta2>("beta2", "share of the mean square that is kept"),
        Field<&AdamUpdateAttrs::epsilon>("epsilon", "added to the root of the mean square"),
        Field<&AdamUpdateAttrs::weight_decay>(
            "weight_decay", "share of w added to its gradient; adamw: of lr * w taken off w"),
        Field<&AdamUpdateAttrs::lr_factor>("lr_factor", "factor of the learning rate")};
  }
};

extern const OpDef kAdamUpdate;
extern const OpDef kAdamwUpdate;

std::vector<const OpDef*> AdamRows();
std::vector<KernelRow> AdamReferenceKernels();
std::vector<KernelRow> AdamFastKernels();
std::vector<KernelRow> AdamCudaKernels();  // in builds with CUDA

}  // namespace capstan
