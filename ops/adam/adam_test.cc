#include "ops/adam/adam.h"

#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

// Weights after each of three updates with rate 0.1 from w = 1, m = v = 0 and gradients 1, 2, -1.
std::vector<double> ThreeSteps(const OpDef& op, double weight_decay) {
  const AnyStruct attrs =
      AnyStruct::Of(AdamUpdateAttrs{.beta2 = 0.99, .epsilon = 1e-3, .weight_decay = weight_decay});
  std::vector<double> w = {1}, m = {0}, v = {0}, weights;
  const std::vector<double> grads = {1, 2, -1};
  for (size_t i = 0; i < grads.size(); ++i) {
    // The gradient comes doubled, and the scale halves it.
    const auto result =
        RunOp(op, attrs, AdamReferenceKernels(),
              {Numbers({1}, w), Numbers({1}, {2 * grads[i]}), Numbers({1}, m), Numbers({1}, v),
               Numbers({}, {0.1}), Numbers({}, {double(i)}, DType::kI64), Numbers({}, {0.5})});
    w = result[0];
    m = result[1];
    v = result[2];
    weights.push_back(w[0]);
  }
  return weights;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12);
}

// Expected: torch.optim.Adam and AdamW in float64.
TEST(AdamUpdate, AsPyTorch) {
  ExpectNear(ThreeSteps(kAdamUpdate, 0), {0.9000999000999, 0.8037732427306806, 0.7617936465818151});
  ExpectNear(ThreeSteps(kAdamUpdate, 0.1),
             {0.9000908265213442, 0.8032201683827046, 0.7565284768648568});
}

TEST(AdamwUpdate, AsPyTorch) {
  ExpectNear(ThreeSteps(kAdamwUpdate, 0.1),
             {0.8900999000999, 0.7848722437296816, 0.7350439251435192});
}

}  // namespace
}  // namespace capstan
