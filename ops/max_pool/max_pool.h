// Max pooling: y[n,c,p,q] = the largest x[n,c,h,w] of the window at (p,q). Padding never wins; the
// first of equal elements does; NaN wins over numbers.
//
//   x = MaxPool(b, x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"
#include "ops/pool/pool_attrs.h"

namespace capstan {

struct MaxPoolGradAttrs : PoolAttrs {
  std::vector<int64_t> input_size = {1, 1};

  static constexpr auto Fields() {
    return JoinFields(PoolFields<MaxPoolGradAttrs>(), InputSizeField<MaxPoolGradAttrs>());
  }
};

extern const OpDef kMaxPool;
extern const OpDef kMaxPoolGrad;

// x [n,c,h,w] -> [n,c,p,q].
ValueId MaxPool(Builder& b, ValueId x, const PoolAttrs& attrs);

std::vector<const OpDef*> MaxPoolRows();
std::vector<KernelRow> MaxPoolReferenceKernels();
std::vector<KernelRow> MaxPoolFastKernels();
std::vector<KernelRow> MaxPoolCudaKernels();  // in builds with CUDA

}  // namespace capstan
