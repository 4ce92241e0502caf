#include "ops/max_pool/max_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using testing::ElementsAre;
using testing::IsNan;
using Values = std::vector<double>;

// The reference kernels on plain images, the fast ones on channels_last.
class MaxPoolTest : public testing::TestWithParam<MemoryFormat> {
 protected:
  TestTensor Image(Shape shape, Values values) const {
    return {{DType::kF32, shape, GetParam()}, std::move(values)};
  }
  // y and what was saved.
  std::vector<Values> Pool(const PoolAttrs& attrs, const TestTensor& x) const {
    return RunOp(kMaxPool, AnyStruct::Of(attrs), kernels_, {x});
  }
  Values Grad(const PoolAttrs& attrs, const TestTensor& x, const TestTensor& dy) const {
    const Values saved = Pool(attrs, x)[1];
    MaxPoolGradAttrs grad;
    static_cast<PoolAttrs&>(grad) = attrs;
    grad.input_size = {x.type.shape[2], x.type.shape[3]};
    const TensorType bytes = {DType::kOpaque, {static_cast<int64_t>(saved.size())}};
    return RunOp(kMaxPoolGrad, AnyStruct::Of(grad), kernels_, {dy, {bytes, saved}})[0];
  }

  const bool plain_ = GetParam() == MemoryFormat::kPlain;
  const std::vector<KernelRow> kernels_ = plain_ ? MaxPoolReferenceKernels() : MaxPoolFastKernels();
};

TEST_P(MaxPoolTest, PaddingNeverWins) {
  const PoolAttrs attrs = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const TestTensor x = Image({1, 2, 3, 3}, {-9, -8, -7, -6, -5, -4, -3, -2, -1,  //
                                            -1, -2, -3, -4, -5, -6, -7, -8, -9});
  EXPECT_EQ(Pool(attrs, x)[0], (Values{-5, -4, -2, -1, -1, -2, -4, -5}));
}

TEST_P(MaxPoolTest, GradientsOfOverlappingWindowsAdd) {
  const PoolAttrs attrs = {.kernel = {1, 2}, .stride = {1, 1}};
  const TestTensor x = Image({1, 1, 1, 4}, {0, 5, 1, 2});
  EXPECT_EQ(Grad(attrs, x, Image({1, 1, 1, 3}, {1, 10, 100})), (Values{0, 11, 0, 100}));
}

TEST_P(MaxPoolTest, FirstOfEqualsWins) {
  const TestTensor x = Image({1, 1, 2, 2}, {1, 3, 3, 3});
  EXPECT_EQ(Grad({}, x, Image({1, 1, 1, 1}, {7})), (Values{0, 7, 0, 0}));
}

TEST_P(MaxPoolTest, NanWins) {
  const double nan = std::nan("");
  const TestTensor x = Image({1, 1, 2, 4}, {1, nan, INFINITY, 4, 2, 3, nan, 5});
  EXPECT_THAT(Pool({}, x)[0], ElementsAre(IsNan(), IsNan()));
  EXPECT_EQ(Grad({}, x, Image({1, 1, 1, 2}, {7, 8})), (Values{0, 7, 0, 0, 0, 0, 8, 0}));
}

TEST_P(MaxPoolTest, CeilModeKeepsPartsOfWindows) {
  const TestTensor x = Image({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, -INFINITY});
  EXPECT_EQ(Pool({}, x)[0], (Values{5}));
  EXPECT_EQ(Pool({.ceil_mode = true}, x)[0], (Values{5, 6, 8, -INFINITY}));
}

INSTANTIATE_TEST_SUITE_P(Formats, MaxPoolTest,
                         testing::Values(MemoryFormat::kPlain, MemoryFormat::kChannelsLast));

}  // namespace
}  // namespace capstan
