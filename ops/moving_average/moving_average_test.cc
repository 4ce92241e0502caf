#include "ops/moving_average/moving_average.h"

#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

double Average(double decay, double a, double w, const std::vector<KernelRow>& kernels) {
  return RunOp(kEmaUpdate, AnyStruct::Of(EmaUpdateAttrs{decay}), kernels,
               {Numbers({1}, {a}, DType::kF32), Numbers({1}, {w}, DType::kF32)})[0][0];
}

TEST(EmaUpdate, ClosedForm) {
  for (const auto& kernels : {MovingAverageReferenceKernels(), MovingAverageFastKernels()}) {
    EXPECT_NEAR(Average(0.9, 1, 2, kernels), 1.1, 1e-7);
    EXPECT_NEAR(Average(0.9, 1.1, 3, kernels), 1.29, 2e-7);
    EXPECT_NEAR(Average(0.2, 1, 2, kernels), 1.8, 1e-7);
  }
}

// Exactly: with decay 0 and 1, and where the average is the weight.
TEST(EmaUpdate, EndsAreExact) {
  const auto third = static_cast<double>(1.0f / 3);
  for (const auto& kernels : {MovingAverageReferenceKernels(), MovingAverageFastKernels()}) {
    EXPECT_EQ(Average(0, 1e6, third, kernels), third);
    EXPECT_EQ(Average(1, third, 1e6, kernels), third);
    for (const double decay : {0.3, 0.999}) EXPECT_EQ(Average(decay, third, third, kernels), third);
  }
}

}  // namespace
}  // namespace capstan
