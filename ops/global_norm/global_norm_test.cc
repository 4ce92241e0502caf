#include "ops/global_norm/global_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

TEST(SquaredNorm, AnyNumberOfThreadsGivesTheSameBits) {
  TestTensor x = Numbers({100003}, {}, DType::kF32);
  for (int64_t i = 0; i < x.type.count(); ++i) x.values.push_back(std::sin(double(i)));
  const TestTensor y = Numbers({2, 2}, {1, 2, 3, 4}, DType::kF32);
  const double one = RunOp(kSquaredNorm, {}, GlobalNormFastKernels(), {x, y}, 1)[0][0];
  double expected = 30;
  for (const double v : x.values) expected += double(float(v)) * double(float(v));
  EXPECT_EQ(one, double(float(expected)));
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(RunOp(kSquaredNorm, {}, GlobalNormFastKernels(), {x, y}, threads)[0][0], one);
  }
}

TEST(ClipScale, LimitsTheNorm) {
  const AnyStruct limit = AnyStruct::Of(ClipScaleAttrs{.max_norm = 2});
  const auto scale = [&](double squared) {
    return RunOp(kClipScale, limit, GlobalNormReferenceKernels(), {Numbers({}, {squared})})[0][0];
  };
  EXPECT_EQ(scale(25), 0.4);
  EXPECT_EQ(scale(4), 1);
  EXPECT_EQ(scale(0), 1);
  EXPECT_TRUE(std::isnan(scale(NAN)));
}

}  // namespace
}  // namespace capstan
