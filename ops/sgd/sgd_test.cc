#include "ops/sgd/sgd.h"

#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

TEST(SgdUpdate, ThreeSteps) {
  // w' = w - 0.1 * 0.5 * (2 * g + 0.1 * w)
  const AnyStruct attrs = AnyStruct::Of(SgdUpdateAttrs{.weight_decay = 0.1, .lr_factor = 0.5});
  std::vector<double> w = {1};
  const double expected[] = {0.895, 0.990525, 0.885572375};
  const double grads[] = {1, -1, 1};
  for (int i = 0; i < 3; ++i) {
    w = RunOp(kSgdUpdate, attrs, SgdReferenceKernels(),
              {Numbers({1}, w), Numbers({1}, {grads[i]}), Numbers({}, {0.1}), Numbers({}, {2})})[0];
    EXPECT_NEAR(w[0], expected[i], 1e-12);
  }
}

TEST(SgdUpdate, LearningRateMayHaveAnotherFloatType) {
  const auto w = RunOp(kSgdUpdate, {}, SgdReferenceKernels(),
                       {Numbers({1}, {1}), Numbers({1}, {2}), Numbers({}, {0.25}, DType::kF32)});
  EXPECT_EQ(w[0][0], 0.5);
}

}  // namespace
}  // namespace capstan
