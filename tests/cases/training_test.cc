// Losses, rates and batch norm with the values that users were right to expect.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/batch_norm/batch_norm.h"
#include "ops/softmax_cross_entropy/softmax_cross_entropy.h"
#include "ops/testing/run_op.h"
#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using testing::HasSubstr;
using testing::Not;
using Values = std::vector<double>;

TEST(Losses, LabelSmoothingSpreadsOverAllClasses) {  // LOSS-01
  const auto loss = [](const std::vector<KernelRow>& kernels, Values logits, double label,
                       double smoothing) {
    const AnyStruct attrs = AnyStruct::Of(SoftmaxCrossEntropyAttrs{.label_smoothing = smoothing});
    return RunOp(kSoftmaxCrossEntropy, attrs, kernels,
                 {Numbers({1, 3}, std::move(logits), DType::kF32),
                  Numbers({1}, {label}, DType::kI64)})[0][0];
  };
  for (const auto& kernels :
       {SoftmaxCrossEntropyReferenceKernels(), SoftmaxCrossEntropyFastKernels()}) {
    EXPECT_NEAR(loss(kernels, {2, 0, -1}, 0, 0.1), 0.336512686, 1e-6);
    EXPECT_NEAR(loss(kernels, {2, 0, -1}, 0, 0), 0.169846020, 1e-6);
    EXPECT_EQ(loss(kernels, {1000, 0, 0}, 1, 0), 1000);
    const Values grad =
        RunOp(kSoftmaxCrossEntropyGrad, AnyStruct::Of(SoftmaxCrossEntropyAttrs{}), kernels,
              {Numbers({1}, {1}, DType::kF32), Numbers({1, 3}, {1000, 0, 0}, DType::kF32),
               Numbers({1}, {1}, DType::kI64)})[0];
    EXPECT_EQ(grad, (Values{1, -1, 0}));
  }
}

TEST(BatchNorm, RunningVarianceIsUnbiased) {  // BN-01
  for (const auto& kernels : {BatchNormReferenceKernels(), BatchNormFastKernels()}) {
    const auto number = [](double v) { return Numbers({1}, {v}, DType::kF32); };
    const auto out = RunOp(
        kBatchNorm, AnyStruct::Of(BatchNormAttrs{.momentum = 0.9}), kernels,
        {Numbers({4, 1}, {1, 2, 3, 4}, DType::kF32), number(1), number(0), number(0), number(1)});
    const Values wanted = {-1.34163542, -0.447211807, 0.447211807, 1.34163542};
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(out[0][i], wanted[i], 1e-6);
    EXPECT_NEAR(out[1][0], 2.5, 1e-6);
    EXPECT_NEAR(1 / (out[2][0] * out[2][0]), 1.25 + 1e-5, 1e-5);
    EXPECT_NEAR(out[3][0], 0.25, 1e-6);
    EXPECT_NEAR(out[4][0], 1.0666667, 1e-6);
  }
}

// What is wrong with a schedule is told before any data or checkpoint is opened.
TEST(Rates, MistakesComeBeforeTheData) {  // CFG-11 and its kind
  const JobFolder job("rates");
  job.Write("job.yaml", job.Classification(3));  // the lists are not there
  const auto error = [&](const std::string& lr, const std::string& more = "") {
    const Outcome out = job.Run("train", fmt::format("-o 'optimizer.lr={}' {}", lr, more));
    EXPECT_EQ(out.status, 2) << out.output;
    EXPECT_THAT(out.output, Not(HasSubstr("train.txt")));
    EXPECT_TRUE(job.Read("output/train.log").empty());
    return out.output;
  };
  EXPECT_THAT(error("{name: piecewise, decay_epochs: [1, 2, 3], values: [0.1, 0.01]}"),
              HasSubstr("optimizer.lr.values: 2 rates for 3 changes; wanted 4"));
  EXPECT_THAT(error("{name: multi_step, decay_epochs: [3, 2]}"),
              HasSubstr("optimizer.lr.decay_epochs: must ascend"));
  EXPECT_THAT(error("{name: cosine, warmup_epochs: 2}"),
              HasSubstr("optimizer.lr.warmup_epochs: warm-up takes 2 epochs, but training has 1"));
  EXPECT_THAT(
      error("{name: cosine, warmup_iterations: 6}", "train.max_iterations=5"),
      HasSubstr("optimizer.lr.warmup_iterations: warm-up takes 6 updates, but training has 5"));
  // How many updates an epoch has, only the data say.
  job.CopyPicture("really_png.JPEG", "a.png");
  job.Write("train.txt", "a.png 0\na.png 1\na.png 2\na.png 0\n");
  job.Write("val.txt", "a.png 0\n");
  const Outcome late = job.Run("train", "-o 'optimizer.lr={name: cosine, warmup_iterations: 3}'");
  EXPECT_EQ(late.status, 2) << late.output;
  EXPECT_THAT(late.output, HasSubstr("warm-up takes 3 updates, but training has 2; shorten "
                                     "warmup_iterations"));
  EXPECT_THAT(late.output, Not(HasSubstr("starting at")));
}

TEST(Rates, WarmUpIsGivenOnce) {
  const JobFolder job("warmup_twice");
  job.Write("job.yaml", job.Classification(3));
  const Outcome out =
      job.Run("train", "-o 'optimizer.lr={name: cosine, warmup_iterations: 6, warmup_epochs: 1}'");
  EXPECT_EQ(out.status, 2) << out.output;
  EXPECT_THAT(out.output, HasSubstr("give either warmup_epochs or warmup_iterations"));
}

}  // namespace
}  // namespace capstan
