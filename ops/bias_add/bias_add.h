// Adds one number to each slice along an axis: a linear layer's or a convolution's bias.
//
//   x = BiasAdd(b, x, bias);             // channels of an image
//   x = BiasAdd(b, x, bias, -1);         // the last dimension
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct BiasAddAttrs {
  int64_t axis = 1;

  static constexpr auto Fields() {
    return std::array{
        Field<&BiasAddAttrs::axis>("axis", "dimension that the bias runs along; -1: the last")};
  }
};

extern const OpDef kBiasAdd;
extern const OpDef kBiasAddGrad;

// x: any shape, bias: [size of x along axis] -> the shape of x.
ValueId BiasAdd(Builder& b, ValueId x, ValueId bias, int64_t axis = 1);

// The axis counted from the front. CHECKs nothing: infer has.
inline int BiasAxis(const AnyStruct& attrs, int ndim) {
  const int64_t axis = attrs.As<BiasAddAttrs>().axis;
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

std::vector<const OpDef*> BiasAddRows();
std::vector<KernelRow> BiasAddReferenceKernels();
std::vector<KernelRow> BiasAddFastKernels();
std::vector<KernelRow> BiasAddCudaKernels();  // in builds with CUDA

}  // namespace capstan
