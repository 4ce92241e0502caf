// Matrix product y = a' · b' of the last two dimensions, where ' is an optional transpose; all
// dimensions before them are a batch and equal in a and b.
//
//   y = MatMul(b, x, w, {.transpose_b = true});   // x [n,k], w [m,k] -> y [n,m]
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct MatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;

  static constexpr auto Fields() {
    return std::array{Field<&MatMulAttrs::transpose_a>("transpose_a", "a is stored as [..,k,m]"),
                      Field<&MatMulAttrs::transpose_b>("transpose_b", "b is stored as [..,n,k]")};
  }
};

extern const OpDef kMatMul;

// a [b*,m,k] (or [b*,k,m]), b [b*,k,n] (or [b*,n,k]) -> [b*,m,n].
ValueId MatMul(Builder& b, ValueId x, ValueId y, MatMulAttrs attrs = {});

// The sizes of one call.
struct MatMulSizes {
  int64_t batch = 1, m = 0, n = 0, k = 0;
};
MatMulSizes SizesOf(const MatMulAttrs& attrs, const Shape& a, const Shape& b);

std::vector<const OpDef*> MatmulRows();
std::vector<KernelRow> MatmulReferenceKernels();
std::vector<KernelRow> MatmulOnednnKernels();

}  // namespace capstan
