// Elementwise product of two tensors of one shape.
//
//   y = Mul(b, x, gate);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

extern const OpDef kMul;

// x, y: the same shape -> that shape.
ValueId Mul(Builder& b, ValueId x, ValueId y);

std::vector<const OpDef*> MulRows();
std::vector<KernelRow> MulReferenceKernels();
std::vector<KernelRow> MulFastKernels();
std::vector<KernelRow> MulCudaKernels();  // in builds with CUDA

}  // namespace capstan
