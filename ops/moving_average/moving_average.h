// Exponential moving average of weights and statistics, over whole buckets:
//   a' = decay * a + (1 - decay) * w.
// Without bias correction: averages start as the weights they follow, as in PaddleClas' EMA and
// timm's ModelEma. Computed from the end that is nearer (as torch.lerp), so that decay 0 gives
// exactly w, and a == w stays exactly so.
//
//   ema_update(a, w){decay=0.999}
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct EmaUpdateAttrs {
  double decay = 0.9999;

  static constexpr auto Fields() {
    return std::array{Field<&EmaUpdateAttrs::decay>("decay", "share of the average that is kept",
                                                    Bounds{.min = 0, .max = 1})};
  }
};

extern const OpDef kEmaUpdate;

std::vector<const OpDef*> MovingAverageRows();
std::vector<KernelRow> MovingAverageReferenceKernels();
std::vector<KernelRow> MovingAverageFastKernels();

}  // namespace capstan
