// Max pooling: y[n,c,p,q] = the largest x[n,c,h,w] of the window at (p,q). Padding never wins; the
// first of equal elements does; NaN wins over numbers.
//
//   x = MaxPool(b, x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
#pragma once

#include <array>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"
#include "ops/pool/window.h"

namespace capstan {

struct PoolAttrs {
  std::vector<int64_t> kernel = {2, 2};
  std::vector<int64_t> stride = {2, 2};
  std::vector<int64_t> padding = {0, 0};
  bool ceil_mode = false;

  template <typename Owner>
  static constexpr auto FieldsOf() {
    return std::array{
        Field<&PoolAttrs::kernel, Owner>("kernel", "height, width of the window", kAtLeastOne),
        Field<&PoolAttrs::stride, Owner>("stride", "height, width of a step", kAtLeastOne),
        Field<&PoolAttrs::padding, Owner>(
            "padding", "pixels added at top and bottom, left and right", kNonNegative),
        Field<&PoolAttrs::ceil_mode, Owner>("ceil_mode",
                                            "keep a last window that only partly fits")};
  }
  static constexpr auto Fields() { return FieldsOf<PoolAttrs>(); }
};

struct PoolGradAttrs : PoolAttrs {
  std::vector<int64_t> input_size = {1, 1};

  static constexpr auto Fields() {
    return JoinFields(FieldsOf<PoolGradAttrs>(),
                      std::array{Field<&PoolGradAttrs::input_size>(
                          "input_size", "height and width of the pooled image", kAtLeastOne)});
  }
};

extern const OpDef kMaxPool;
extern const OpDef kMaxPoolGrad;

// x [n,c,h,w] -> [n,c,p,q].
ValueId MaxPool(Builder& b, ValueId x, const PoolAttrs& attrs);

// The window of max pooling.
absl::StatusOr<Window> PoolWindow(const PoolAttrs& attrs);

std::vector<const OpDef*> MaxPoolRows();
std::vector<KernelRow> MaxPoolReferenceKernels();
std::vector<KernelRow> MaxPoolFastKernels();

}  // namespace capstan
