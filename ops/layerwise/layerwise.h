// Optimizers with a rate of their own for each parameter tensor, after the norms of its weights and
// of its step. They run over whole buckets; segment i of a bucket is [segment_ends[i - 1],
// segment_ends[i]) (from 0), and padding at its end holds zeros, which change no norm.
//
//   lamb_update(w, g, m, v, lr, iteration, grad_scale){segment_ends=[16, 4112], weight_decay=0.01}
//   lars_update(w, g, v, lr, grad_scale){segment_ends=[16, 4112], weight_decay=0.0005}
//
// LAMB (You et al., ICLR 2020, algorithm 2): Adam's step with bias correction, plus decay * w; the
// rate of a tensor is lr * |w| / |step|. LARS (You et al., 2017, in the form of Paddle's
// LarsMomentum, with the rate inside the velocity): lr * trust * |w| / (|g| + decay * |w| +
// epsilon). The factor of lr is 1 where a norm is zero, and everywhere with adapt=false.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct LambUpdateAttrs {
  std::vector<int64_t> segment_ends;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  bool adapt = true;

  static constexpr auto Fields() {
    return std::array{
        Field<&LambUpdateAttrs::segment_ends>("segment_ends",
                                              "where each tensor ends, in elements"),
        Field<&LambUpdateAttrs::beta1>("beta1", "share of the mean gradient that is kept"),
        Field<&LambUpdateAttrs::beta2>("beta2", "share of the mean square that is kept"),
        Field<&LambUpdateAttrs::epsilon>("epsilon", "added to the root of the mean square"),
        Field<&LambUpdateAttrs::weight_decay>("weight_decay", "share of w added to its step"),
        Field<&LambUpdateAttrs::adapt>("adapt", "whether tensors have rates of their own")};
  }
};

struct LarsUpdateAttrs {
  std::vector<int64_t> segment_ends;
  double momentum = 0.9;
  double trust = 0.001;
  double epsilon = 0;
  double weight_decay = 0;
  bool adapt = true;

  static constexpr auto Fields() {
    return std::array{
        Field<&LarsUpdateAttrs::segment_ends>("segment_ends",
                                              "where each tensor ends, in elements"),
        Field<&LarsUpdateAttrs::momentum>("momentum", "share of the velocity that is kept"),
        Field<&LarsUpdateAttrs::trust>("trust", "factor of every tensor's rate"),
        Field<&LarsUpdateAttrs::epsilon>("epsilon", "added to the norm of the step"),
        Field<&LarsUpdateAttrs::weight_decay>("weight_decay", "share of w added to its gradient"),
        Field<&LarsUpdateAttrs::adapt>("adapt", "whether tensors have rates of their own")};
  }
};

extern const OpDef kLambUpdate;
extern const OpDef kLarsUpdate;

std::vector<const OpDef*> LayerwiseRows();
std::vector<KernelRow> LayerwiseReferenceKernels();
std::vector<KernelRow> LayerwiseFastKernels();
std::vector<KernelRow> LayerwiseCudaKernels();  // in builds with CUDA

}  // namespace capstan
