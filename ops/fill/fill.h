// A constant tensor: every element has one value.
//
//   one = b.Full({}, 1.0, DType::kF32);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct FillAttrs {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  double value = 0;

  static constexpr auto Fields() {
    return std::array{
        Field<&FillAttrs::dtype>("dtype", "element type of the result"),
        Field<&FillAttrs::shape>("shape", "sizes of the result; empty: a scalar", kNonNegative),
        Field<&FillAttrs::value>("value", "every element")};
  }
};

// Models write Builder::Full.
extern const OpDef kFill;

std::vector<const OpDef*> FillRows();
std::vector<KernelRow> FillReferenceKernels();
std::vector<KernelRow> FillCudaKernels();  // in builds with CUDA

}  // namespace capstan
