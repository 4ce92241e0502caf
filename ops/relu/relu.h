// ReLU: y = max(x, 0), elementwise, any shape.
//
//   x = Relu(b, x);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

extern const OpDef kRelu;
extern const OpDef kReluGrad;

ValueId Relu(Builder& b, ValueId x);

std::vector<const OpDef*> ReluRows();
std::vector<KernelRow> ReluReferenceKernels();
std::vector<KernelRow> ReluFastKernels();
std::vector<KernelRow> ReluCudaKernels();  // in builds with CUDA

}  // namespace capstan
