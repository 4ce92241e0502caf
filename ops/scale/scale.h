// Product of a tensor and a scalar that is itself a value of the graph.
//
//   grad = Scale(b, grad, clip_factor);
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

extern const OpDef kScale;
extern const OpDef kScaleFactorGrad;

// x: any shape, factor: a scalar of its element type -> the shape of x.
ValueId Scale(Builder& b, ValueId x, ValueId factor);

std::vector<const OpDef*> ScaleRows();
std::vector<KernelRow> ScaleReferenceKernels();
std::vector<KernelRow> ScaleFastKernels();
std::vector<KernelRow> ScaleCudaKernels();  // in builds with CUDA

}  // namespace capstan
