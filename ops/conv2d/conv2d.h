// Two-dimensional convolution (cross-correlation, as networks mean it), without a bias.
//
//   y[n,o,p,q] = sum over i, u, v of x[n, g(o) i, p s + u d - pad, q s + v d - pad] w[o,i,u,v]
//
//   x = Conv2d(b, x, w, {.stride = {2, 2}, .padding = {1, 1}});   // [8,3,32,32] -> [8,16,16,16]
#pragma once

#include <array>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"
#include "ops/pool/window.h"

namespace capstan {

struct Conv2dAttrs {
  std::vector<int64_t> stride = {1, 1};
  std::vector<int64_t> padding = {0, 0};
  std::vector<int64_t> dilation = {1, 1};
  int64_t groups = 1;

  template <typename Owner>
  static constexpr auto FieldsOf() {
    return std::array{
        Field<&Conv2dAttrs::stride, Owner>("stride", "height, width of a step", kAtLeastOne),
        Field<&Conv2dAttrs::padding, Owner>("padding", "zeros at top and bottom, left and right",
                                            kNonNegative),
        Field<&Conv2dAttrs::dilation, Owner>("dilation", "distance between the filter's elements",
                                             kAtLeastOne),
        Field<&Conv2dAttrs::groups, Owner>(
            "groups", "channels are cut into as many parts, each with its own filters",
            kAtLeastOne)};
  }
  static constexpr auto Fields() { return FieldsOf<Conv2dAttrs>(); }
};

// The image's size cannot be told from dy where the stride skips its last pixels.
struct Conv2dInputGradAttrs : Conv2dAttrs {
  std::vector<int64_t> input_size = {1, 1};

  static constexpr auto Fields() {
    return JoinFields(FieldsOf<Conv2dInputGradAttrs>(),
                      std::array{Field<&Conv2dInputGradAttrs::input_size>(
                          "input_size", "height and width of the image", kAtLeastOne)});
  }
};

struct Conv2dWeightGradAttrs : Conv2dAttrs {
  std::vector<int64_t> kernel_size = {1, 1};

  static constexpr auto Fields() {
    return JoinFields(FieldsOf<Conv2dWeightGradAttrs>(),
                      std::array{Field<&Conv2dWeightGradAttrs::kernel_size>(
                          "kernel_size", "height and width of the filter", kAtLeastOne)});
  }
};

extern const OpDef kConv2d;
extern const OpDef kConv2dInputGrad;
extern const OpDef kConv2dWeightGrad;

// x [n,c,h,w], w [o, c/groups, kh, kw] -> [n,o,p,q].
ValueId Conv2d(Builder& b, ValueId x, ValueId w, const Conv2dAttrs& attrs = {});

// The window of a convolution whose filter has this height and width.
absl::StatusOr<Window> ConvWindow(const Conv2dAttrs& attrs, int64_t height, int64_t width);

std::vector<const OpDef*> Conv2dRows();
std::vector<KernelRow> Conv2dReferenceKernels();
std::vector<KernelRow> Conv2dOnednnKernels();

}  // namespace capstan
