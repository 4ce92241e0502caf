// Sums, means and maxima over dimensions, and broadcast, which is the gradient of a sum.
//
//   loss = ReduceMean(b, losses);                        // over all dimensions: a scalar
//   x = ReduceMean(b, x, {2, 3});                        // [n,c,h,w] -> [n,c]
//   m = ReduceMax(b, x, {-1}, /*keep_dims=*/true);       // [n,c] -> [n,1]
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct ReduceAttrs {
  std::vector<int64_t> axes;
  bool keep_dims = false;

  static constexpr auto Fields() {
    return std::array{
        Field<&ReduceAttrs::axes>("axes", "dimensions to reduce, ascending; none: all of them",
                                  kNonNegative),
        Field<&ReduceAttrs::keep_dims>("keep_dims", "reduced dimensions stay, with size one")};
  }
};

struct BroadcastAttrs {
  std::vector<int64_t> axes;
  std::vector<int64_t> sizes;
  bool keep_dims = false;
  double scale = 1;

  static constexpr auto Fields() {
    return std::array{
        Field<&BroadcastAttrs::axes>("axes", "dimensions of y along which x repeats, ascending",
                                     kNonNegative),
        Field<&BroadcastAttrs::sizes>("sizes", "their sizes in y", kAtLeastOne),
        Field<&BroadcastAttrs::keep_dims>("keep_dims", "x has these dimensions, with size one"),
        Field<&BroadcastAttrs::scale>("scale", "factor of every element")};
  }
};

extern const OpDef kReduceSum;
extern const OpDef kReduceMean;
extern const OpDef kReduceMax;
extern const OpDef kReduceMaxGrad;
extern const OpDef kBroadcast;

// Axes may be given from the end (-1: the last); none: all dimensions.
ValueId ReduceSum(Builder& b, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false);
ValueId ReduceMean(Builder& b, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false);
ValueId ReduceMax(Builder& b, ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false);
// y has dimension axes[i] with size sizes[i]; the other dimensions are those of x in order.
ValueId Broadcast(Builder& b, ValueId x, BroadcastAttrs attrs);

// Which dimensions of an ndim-dimensional tensor `axes` reduces (none named: all).
std::vector<bool> ReducedDims(const std::vector<int64_t>& axes, int ndim);

std::vector<const OpDef*> ReduceRows();
std::vector<KernelRow> ReduceReferenceKernels();
std::vector<KernelRow> ReduceCudaKernels();  // in builds with CUDA

}  // namespace capstan
