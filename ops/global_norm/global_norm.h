// Clipping by the global norm of all gradients (Pascanu et al., ICML 2013; in the form of Paddle's
// ClipGradByGlobalNorm): the optimizer rows multiply gradients by
// max_norm / max(norm, max_norm), where norm^2 is the sum of squares over all buckets.
//
//   squared = squared_norm(g0, g1, ...);  scale = clip_scale(squared){max_norm=1};
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct ClipScaleAttrs {
  double max_norm = 1;

  static constexpr auto Fields() {
    return std::array{Field<&ClipScaleAttrs::max_norm>("max_norm", "limit of the norm", kPositive)};
  }
};

extern const OpDef kSquaredNorm;
extern const OpDef kClipScale;

std::vector<const OpDef*> GlobalNormRows();
std::vector<KernelRow> GlobalNormReferenceKernels();
std::vector<KernelRow> GlobalNormFastKernels();
std::vector<KernelRow> GlobalNormCudaKernels();  // in builds with CUDA

}  // namespace capstan
