// Softmax over the last dimension.
//
//   probabilities = Softmax(b, logits);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

extern const OpDef kSoftmax;
extern const OpDef kSoftmaxGrad;

// x [..., k] -> [..., k], positive, summing to 1 over k.
ValueId Softmax(Builder& b, ValueId x);

std::vector<const OpDef*> SoftmaxRows();
std::vector<KernelRow> SoftmaxReferenceKernels();
std::vector<KernelRow> SoftmaxFastKernels();
std::vector<KernelRow> SoftmaxCudaKernels();  // in builds with CUDA

}  // namespace capstan
