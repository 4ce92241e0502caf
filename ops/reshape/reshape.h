// Reshape: the same elements in logical (row-major) order under another shape. Free where both
// types are row-major in memory, a copy otherwise.
//
//   x = Flatten(b, x);                 // [n,c,h,w] -> [n,c*h*w]
//   x = Reshape(b, x, {n, -1, 64});    // -1: whatever is left
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct ReshapeAttrs {
  std::vector<int64_t> shape;

  static constexpr auto Fields() {
    return std::array{Field<&ReshapeAttrs::shape>("shape", "sizes of the result", kAtLeastOne)};
  }
};

extern const OpDef kReshape;

// At most one size may be -1: it is whatever the others leave.
ValueId Reshape(Builder& b, ValueId x, std::vector<int64_t> shape);
// [n, ...] -> [n, rest].
ValueId Flatten(Builder& b, ValueId x);

std::vector<const OpDef*> ReshapeRows();
std::vector<KernelRow> ReshapeReferenceKernels();
std::vector<KernelRow> ReshapeCudaKernels();  // in builds with CUDA

}  // namespace capstan
