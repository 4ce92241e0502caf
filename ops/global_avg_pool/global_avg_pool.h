// Global average pooling: y[n,c,0,0] = mean of x[n,c,:,:].
//
//   x = GlobalAvgPool(b, x);      // [8,512,7,7] -> [8,512,1,1]
#pragma once

#include <array>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct GlobalAvgPoolGradAttrs {
  std::vector<int64_t> input_size = {1, 1};
  static constexpr auto Fields() {
    return std::array{Field<&GlobalAvgPoolGradAttrs::input_size>(
        "input_size", "height and width of the pooled image", kAtLeastOne)};
  }
};

extern const OpDef kGlobalAvgPool;
extern const OpDef kGlobalAvgPoolGrad;

ValueId GlobalAvgPool(Builder& b, ValueId x);

std::vector<const OpDef*> GlobalAvgPoolRows();
std::vector<KernelRow> GlobalAvgPoolReferenceKernels();
std::vector<KernelRow> GlobalAvgPoolFastKernels();
std::vector<KernelRow> GlobalAvgPoolCudaKernels();  // in builds with CUDA

}  // namespace capstan
