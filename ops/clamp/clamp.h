// Clamp: y = min(max(x, min), max), elementwise; a NaN stays a NaN.
//
//   grad = Clamp(b, grad, {.min = -1, .max = 1});
#pragma once

#include <limits>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct ClampAttrs {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();

  static constexpr auto Fields() {
    return std::array{Field<&ClampAttrs::min>("min", "smallest result"),
                      Field<&ClampAttrs::max>("max", "largest result")};
  }
};

extern const OpDef kClamp;
extern const OpDef kClampGrad;

// Any shape.
ValueId Clamp(Builder& b, ValueId x, ClampAttrs attrs);

std::vector<const OpDef*> ClampRows();
std::vector<KernelRow> ClampReferenceKernels();
std::vector<KernelRow> ClampFastKernels();
std::vector<KernelRow> ClampCudaKernels();  // in builds with CUDA

}  // namespace capstan
