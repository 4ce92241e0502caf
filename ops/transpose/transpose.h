// Transpose: exchanges dimensions.
//
//   x = Transpose(b, x, {0, 3, 1, 2});   // [n,c,h,w] -> [n,w,c,h]
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct TransposeAttrs {
  std::vector<int64_t> perm;

  static constexpr auto Fields() {
    return std::array{Field<&TransposeAttrs::perm>(
        "perm", "for each dimension of the result, the dimension of x it is", kNonNegative)};
  }
};

extern const OpDef kTranspose;

// Dimension d of the result is dimension perm[d] of x.
ValueId Transpose(Builder& b, ValueId x, std::vector<int64_t> perm);

std::vector<const OpDef*> TransposeRows();
std::vector<KernelRow> TransposeReferenceKernels();
std::vector<KernelRow> TransposeFastKernels();
std::vector<KernelRow> TransposeCudaKernels();  // in builds with CUDA

}  // namespace capstan
