// Elementwise sum of two tensors of one shape.
//
//   x = Add(b, x, shortcut);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

extern const OpDef kAdd;

// x, y: the same shape -> that shape.
ValueId Add(Builder& b, ValueId x, ValueId y);

std::vector<const OpDef*> AddRows();
std::vector<KernelRow> AddReferenceKernels();
std::vector<KernelRow> AddFastKernels();
std::vector<KernelRow> AddCudaKernels();  // in builds with CUDA

}  // namespace capstan
