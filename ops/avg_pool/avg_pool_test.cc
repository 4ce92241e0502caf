#include "ops/avg_pool/avg_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using testing::Pointwise;
using Values = std::vector<double>;

// The reference kernels on plain images, the fast ones on channels_last. Expected values: those of
// torch.nn.functional.avg_pool2d, times 12.
class AvgPoolTest : public testing::TestWithParam<MemoryFormat> {
 protected:
  TestTensor Image(Shape shape, Values values) const {
    return {{DType::kF32, shape, GetParam()}, std::move(values)};
  }
  Values Pool(const AvgPoolAttrs& attrs, const TestTensor& x) const {
    return Times12(RunOp(kAvgPool, AnyStruct::Of(attrs), kernels_, {x})[0]);
  }
  // For a dy of ones.
  Values Grad(const AvgPoolAttrs& attrs, const Shape& x, const Shape& y) const {
    AvgPoolGradAttrs grad;
    static_cast<AvgPoolAttrs&>(grad) = attrs;
    grad.input_size = {x[2], x[3]};
    const TestTensor ones = Image(y, Values(static_cast<size_t>(y.count()), 1.0));
    return Times12(RunOp(kAvgPoolGrad, AnyStruct::Of(grad), kernels_, {ones})[0]);
  }
  static Values Times12(Values values) {
    for (double& v : values) v *= 12;
    return values;
  }

  const std::vector<KernelRow> kernels_ =
      GetParam() == MemoryFormat::kPlain ? AvgPoolReferenceKernels() : AvgPoolFastKernels();
  const AvgPoolAttrs attrs_ = {
      .kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .ceil_mode = true};
  AvgPoolAttrs Counting() const {
    AvgPoolAttrs attrs = attrs_;
    attrs.exclusive = false;
    return attrs;
  }
  const TestTensor x_ =
      Image({1, 1, 4, 5}, {-3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1, -1, -3, 2, 0, -2, 3, 1});
};

MATCHER(IsNear, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-5; }

TEST_P(AvgPoolTest, PaddingDoesNotCount) {
  EXPECT_THAT(Pool(attrs_, x_), Pointwise(IsNear(), Values{-3, 9, 6, 4, 12, 24}));
  EXPECT_THAT(Grad(attrs_, {1, 1, 4, 5}, {1, 1, 3, 2}),
              Pointwise(IsNear(), Values{3, 3, 0, 3, 3, 5, 5, 0, 5, 5,  //
                                         2, 2, 0, 2, 2, 8, 8, 0, 8, 8}));
}

TEST_P(AvgPoolTest, PaddingCounts) {
  EXPECT_THAT(Pool(Counting(), x_), Pointwise(IsNear(), Values{-2, 6, 6, 4, 6, 12}));
  EXPECT_THAT(Grad(Counting(), {1, 1, 4, 5}, {1, 1, 3, 2}),
              Pointwise(IsNear(), Values{2, 2, 0, 2, 2, 4, 4, 0, 4, 4,  //
                                         2, 2, 0, 2, 2, 5, 5, 0, 5, 5}));
}

TEST_P(AvgPoolTest, NanPasses) {
  const Values y = Pool({}, Image({1, 1, 2, 4}, {1, NAN, 1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 12);
}

INSTANTIATE_TEST_SUITE_P(Formats, AvgPoolTest,
                         testing::Values(MemoryFormat::kPlain, MemoryFormat::kChannelsLast));

}  // namespace
}  // namespace capstan
