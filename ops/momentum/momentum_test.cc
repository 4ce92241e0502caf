#include "ops/momentum/momentum.h"

#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

// Weights after each of three updates with rate 0.1 from w = 1, v = 0 and gradients 1, 2, -1.
std::vector<double> ThreeSteps(MomentumUpdateAttrs attrs) {
  std::vector<double> w = {1}, v = {0}, weights;
  for (const double g : {1.0, 2.0, -1.0}) {
    const auto result =
        RunOp(kMomentumUpdate, AnyStruct::Of(attrs), MomentumReferenceKernels(),
              {Numbers({1}, w), Numbers({1}, {g}), Numbers({1}, v), Numbers({}, {0.1})});
    w = result[0];
    v = result[1];
    weights.push_back(w[0]);
  }
  return weights;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12);
}

TEST(MomentumUpdate, Plain) {
  // v: 1, 2.5, 0.25
  ExpectNear(ThreeSteps({.momentum = 0.5}), {0.9, 0.65, 0.625});
}

TEST(MomentumUpdate, Nesterov) {
  // g + 0.5 * v: 1.5, 3.25, -0.875
  ExpectNear(ThreeSteps({.momentum = 0.5, .nesterov = true}), {0.85, 0.525, 0.6125});
}

TEST(MomentumUpdate, CoupledDecay) {
  // g': 1.1, 2.089, -0.93739; v: 1.1, 2.639, 0.38211
  ExpectNear(ThreeSteps({.momentum = 0.5, .weight_decay = 0.1}), {0.89, 0.6261, 0.587889});
}

}  // namespace
}  // namespace capstan
