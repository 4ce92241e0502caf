#include "ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

const std::vector<double> kLogits = {1, 2, -1, 0.5, 0, 3, -2, 0, 1};

using Values = std::vector<double>;

struct Result {
  Values loss, grad;
};

// Loss, and its gradient for dloss = (1, 2, 3, ...).
Result LossAndGrad(const TestTensor& logits, const TestTensor& labels,
                   SoftmaxCrossEntropyAttrs attrs,
                   const std::vector<KernelRow>& kernels = SoftmaxCrossEntropyReferenceKernels()) {
  const AnyStruct any = AnyStruct::Of(attrs);
  TestTensor dloss = Numbers({logits.type.shape[0]}, {}, logits.type.dtype);
  for (int64_t i = 0; i < dloss.type.count(); ++i) dloss.values.push_back(double(i + 1));
  return {RunOp(kSoftmaxCrossEntropy, any, kernels, {logits, labels})[0],
          RunOp(kSoftmaxCrossEntropyGrad, any, kernels, {dloss, logits, labels})[0]};
}

void ExpectNear(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-13);
}

// Expected values: torch.nn.functional.cross_entropy in float64.
TEST(SoftmaxCrossEntropy, HardLabelsAsPyTorch) {
  const TestTensor labels = Numbers({3}, {0, 2, -100}, DType::kI64);
  const Result plain = LossAndGrad(Numbers({3, 3}, kLogits), labels, {});
  ExpectNear(plain.loss, {1.3490122167681864, 0.12387295836936753, 0});
  ExpectNear(plain.grad, {-0.7405035396575809, 0.7053845126982412, 0.03511902695933973,
                          0.1450428913614955, 0.08797296058411569, -0.23301585194561136, 0, 0, 0});
  const Result smooth = LossAndGrad(Numbers({3, 3}, kLogits), labels, {.label_smoothing = 0.1});
  ExpectNear(smooth.loss, {1.3823455501015198, 0.30720629170270086, 0});
  ExpectNear(smooth.grad,
             {-0.6738368729909142, 0.6720511793649079, 0.0017856936260063974, 0.07837622469482884,
              0.021306293917449023, -0.09968251861227806, 0, 0, 0});
}

TEST(SoftmaxCrossEntropy, SoftTargetsAsPyTorch) {
  const TestTensor targets = Numbers({3, 3}, {.2, .5, .3, 1, 0, 0, .3, .3, .1});
  const Result r = LossAndGrad(Numbers({3, 3}, kLogits), targets, {.label_smoothing = 0.1});
  ExpectNear(r.loss, {1.4723455501015197, 2.557206291702701, 1.4681122515741096});
  ExpectNear(r.grad, {0.046163127009085786, 0.22205117936490787, -0.2682143063739936,
                      -1.7216237753051713, 0.021306293917449023, 1.700317481387722,
                      -0.833089330959046, -0.34170275185010224, 1.1747920828091478});
}

TEST(SoftmaxCrossEntropy, ExtremeLogits) {
  const Values extreme = {1e4, -1e4, 0, -1e4, -1e4, -1e4};
  const TestTensor labels = Numbers({2}, {1, 2}, DType::kI32);
  for (const auto& kernels :
       {SoftmaxCrossEntropyReferenceKernels(), SoftmaxCrossEntropyFastKernels()}) {
    const Result r = LossAndGrad(Numbers({2, 3}, extreme, DType::kF32), labels, {}, kernels);
    EXPECT_EQ(r.loss[0], 2e4);
    EXPECT_NEAR(r.loss[1], std::log(3.0), 1e-6);
    EXPECT_EQ((Values{r.grad[0], r.grad[1], r.grad[2]}), (Values{1, -1, 0}));
    EXPECT_NEAR(r.grad[5], -4.0 / 3, 1e-6);
  }
}

TEST(SoftmaxCrossEntropy, IgnoredInvalidAndNotFinite) {
  const Values logits = {1, 2, NAN, 1, NAN, 1, 0, 0};
  const TestTensor labels = Numbers({4}, {2, 7, 0, 7}, DType::kU8);
  for (const auto& kernels :
       {SoftmaxCrossEntropyReferenceKernels(), SoftmaxCrossEntropyFastKernels()}) {
    const Result r =
        LossAndGrad(Numbers({4, 2}, logits, DType::kF32), labels, {.ignore_index = 7}, kernels);
    EXPECT_TRUE(std::isnan(r.loss[0])) << "class 2 of 2";
    EXPECT_TRUE(std::isnan(r.grad[0]) && std::isnan(r.grad[1]));
    EXPECT_EQ(r.loss[1], 0) << "ignored, whatever its logits";
    EXPECT_EQ((Values{r.grad[2], r.grad[3]}), (Values{0, 0}));
    EXPECT_TRUE(std::isnan(r.loss[2])) << "a NaN logit";
    EXPECT_EQ(r.loss[3], 0);
  }
}

TEST(SoftmaxCrossEntropy, MaskedClassesCostNothing) {
  const TestTensor labels = Numbers({1}, {0}, DType::kI64);
  for (const auto& kernels :
       {SoftmaxCrossEntropyReferenceKernels(), SoftmaxCrossEntropyFastKernels()}) {
    const Result r =
        LossAndGrad(Numbers({1, 3}, {0, -INFINITY, 0}, DType::kF32), labels, {}, kernels);
    EXPECT_NEAR(r.loss[0], std::log(2.0), 1e-6);
    EXPECT_EQ(r.grad, (Values{-0.5, 0, 0.5}));
  }
}

}  // namespace
}  // namespace capstan
