// The same values in another element type.
//
// To a float: rounded to nearest, ties to even. From a float to an integer: truncated toward zero.
// Values outside the target's range become its nearest end, NaN becomes 0. To bool: not zero.
//
//   x = Cast(b, image, DType::kF32);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct CastAttrs {
  DType dtype = DType::kF32;

  static constexpr auto Fields() {
    return std::array{Field<&CastAttrs::dtype>("dtype", "element type of the result")};
  }
};

extern const OpDef kCast;

// x: any shape and type -> that shape; x itself where it has the type already.
ValueId Cast(Builder& b, ValueId x, DType dtype);

std::vector<const OpDef*> CastRows();
std::vector<KernelRow> CastReferenceKernels();
std::vector<KernelRow> CastFastKernels();
std::vector<KernelRow> CastCudaKernels();  // in builds with CUDA

}  // namespace capstan
