#include "ops/layerwise/layerwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using Weights = std::vector<std::vector<double>>;

// Two tensors, [3, 4] and [1], in segments of 3 and 2 elements whose last one is padding.
const std::vector<int64_t> kEnds = {3, 5};
const Weights kGradients = {{1, 2, 0, -1, 0}, {0.5, -1, 0, 2, 0}, {2, 0, 0, 1, 0}};

// The three weights after each of three updates with rate 0.1; gradients come doubled, and
// grad_scale halves them.
Weights ThreeSteps(const OpDef& op, const AnyStruct& attrs, bool iteration) {
  std::vector<std::vector<double>> states = {{3, 4, 0, 1, 0}};
  for (int slots = iteration ? 2 : 1; slots > 0; --slots) states.emplace_back(5);
  Weights weights;
  for (size_t t = 0; t < kGradients.size(); ++t) {
    std::vector<double> doubled = kGradients[t];
    for (double& g : doubled) g *= 2;
    std::vector<TestTensor> inputs = {Numbers({5}, states[0]), Numbers({5}, doubled)};
    for (size_t s = 1; s < states.size(); ++s) inputs.push_back(Numbers({5}, states[s]));
    inputs.push_back(Numbers({}, {0.1}));
    if (iteration) inputs.push_back(Numbers({}, {double(t)}, DType::kI64));
    inputs.push_back(Numbers({}, {0.5}));
    states = RunOp(op, attrs, LayerwiseReferenceKernels(), inputs);
    EXPECT_EQ(states[0][2], 0);
    EXPECT_EQ(states[0][4], 0);
    weights.push_back({states[0][0], states[0][1], states[0][3]});
  }
  return weights;
}

void ExpectNear(const Weights& actual, const Weights& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t t = 0; t < actual.size(); ++t) {
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(actual[t][i], expected[t][i], 1e-13) << t << " " << i;
  }
}

// Expected values: algorithm 2 of the paper in a few lines of Python, tensor by tensor.
TEST(Lamb, ThreeUpdatesOfTwoTensors) {
  const auto steps = [](double weight_decay, bool adapt) {
    return ThreeSteps(kLambUpdate,
                      AnyStruct::Of(LambUpdateAttrs{.segment_ends = kEnds,
                                                    .beta2 = 0.99,
                                                    .epsilon = 1e-3,
                                                    .weight_decay = weight_decay,
                                                    .adapt = adapt}),
                      true);
  };
  ExpectNear(steps(0.1, true), {{2.6598496778825096, 3.633533414397209, 1.1},
                                {2.2612613046051786, 3.424007849100612, 0.99},
                                {1.892031145005084, 3.2450094870249724, 0.891}});
  // Adam.
  ExpectNear(steps(0, false), {{2.9000999000999, 3.900049975012494, 1.0999000999000998},
                               {2.806873201582172, 3.8733969144502893, 1.0633624022772925},
                               {2.7162675184808096, 3.8527501180735126, 1.0114745784659618}});
}

TEST(Lars, ThreeUpdatesOfTwoTensors) {
  const auto steps = [](bool adapt) {
    return ThreeSteps(kLarsUpdate,
                      AnyStruct::Of(LarsUpdateAttrs{.segment_ends = kEnds,
                                                    .trust = 0.02,
                                                    .epsilon = 1e-3,
                                                    .weight_decay = 0.1,
                                                    .adapt = adapt}),
                      false);
  };
  ExpectNear(steps(true), {{2.995250391986291, 3.9912314928977675, 1.001634877384196},
                           {2.9860441982463666, 3.987046102102639, 1.001103950684954},
                           {2.968595456727701, 3.981689852508723, 0.9986257271077302}});
  ExpectNear(steps(false),
             {{2.87, 3.76, 1.09}, {2.6743, 3.6064, 0.9601}, {2.271427, 3.432096, 0.733589}});
}

// A tensor that begins at zero, or whose gradient is zero, takes the plain rate.
TEST(Lars, NormsOfZero) {
  const AnyStruct attrs = AnyStruct::Of(LarsUpdateAttrs{.segment_ends = {1, 2}, .trust = 0.02});
  const auto result =
      RunOp(kLarsUpdate, attrs, LayerwiseReferenceKernels(),
            {Numbers({2}, {0, 5}), Numbers({2}, {2, 0}), Numbers({2}, {0, 0}), Numbers({}, {0.1})});
  EXPECT_EQ(result[0], (std::vector<double>{-0.2, 5}));
}

TEST(Layerwise, AnyNumberOfThreadsGivesTheSameBits) {
  constexpr int64_t kCount = 100003;
  TestTensor w = Numbers({kCount}, {}, DType::kF32), g = w, v = w;
  for (int64_t i = 0; i < kCount; ++i) {
    w.values.push_back(std::sin(double(i)));
    g.values.push_back(std::cos(double(i)));
    v.values.push_back(0.5);
  }
  const TestTensor lr = Numbers({}, {0.1}, DType::kF32), zero = Numbers({}, {0}, DType::kI64);
  const std::vector<int64_t> ends = {7, 50000, kCount};
  const AnyStruct lamb = AnyStruct::Of(LambUpdateAttrs{.segment_ends = ends});
  const AnyStruct lars = AnyStruct::Of(LarsUpdateAttrs{.segment_ends = ends});
  const auto run = [&](int threads) {
    auto all = RunOp(kLambUpdate, lamb, LayerwiseFastKernels(), {w, g, v, v, lr, zero}, threads);
    all.push_back(RunOp(kLarsUpdate, lars, LayerwiseFastKernels(), {w, g, v, lr}, threads)[0]);
    return all;
  };
  const auto one = run(1);
  for (const int threads : {2, 3, 7}) EXPECT_EQ(run(threads), one) << threads;
}

}  // namespace
}  // namespace capstan
