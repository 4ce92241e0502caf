#include "ops/reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using Values = std::vector<double>;

AnyStruct Over(std::vector<int64_t> axes) { return AnyStruct::Of(ReduceAttrs{std::move(axes)}); }

TEST(Reduce, SumMeanMax) {
  const std::vector<TestTensor> x = {Numbers({2, 3}, {1, 5, 3, -4, -6, -5})};
  const auto kernels = ReduceReferenceKernels();
  EXPECT_EQ(RunOp(kReduceSum, Over({1}), kernels, x)[0], (Values{9, -15}));
  EXPECT_EQ(RunOp(kReduceSum, Over({}), kernels, x)[0], (Values{-6}));
  EXPECT_EQ(RunOp(kReduceMean, Over({0}), kernels, x)[0], (Values{-1.5, -0.5, -1}));
  EXPECT_EQ(RunOp(kReduceMax, Over({1}), kernels, x)[0], (Values{5, -4}));
}

TEST(Reduce, FirstOfEqualMaximaGetsTheGradient) {
  const auto dx = RunOp(kReduceMaxGrad, Over({1}), ReduceReferenceKernels(),
                        {Numbers({2, 3}, {1, 2, 2, 0, 0, 0}), Numbers({2}, {10, 20})});
  EXPECT_EQ(dx[0], (Values{0, 10, 0, 20, 0, 0}));
}

TEST(Reduce, MaximumOfNaNIsNaN) {
  for (const Values& x : {Values{NAN, 1, 2}, Values{1, NAN, 2}, Values{1, 2, NAN}}) {
    const auto y = RunOp(kReduceMax, Over({}), ReduceReferenceKernels(), {Numbers({3}, x)});
    EXPECT_TRUE(std::isnan(y[0][0]));
  }
}

}  // namespace
}  // namespace capstan
