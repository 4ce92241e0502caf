// The optimizers that a job may name, through the whole loop: closed-form values, and learning.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/train/train_testing.h"

namespace capstan {
namespace {

// A batch of scores (0, 1000, 0) with labels 0 and 1: the softmax is exactly (0, 1, 0), so the
// gradient of the weight is (-0.5, 0.5, 0) at every iteration.
class ConstantGradient : public testing::Test {
 protected:
  ConstantGradient() {
    WritePixel(scratch_.File("a.png"), 0, 255, 0);
    Spill(scratch_.File("list.txt"), "a.png 0\na.png 1\n");
  }

  // The second weight after each of three iterations.
  std::vector<float> Weights(const std::string& optimizer,
                             const std::vector<std::string>& overrides) {
    const JobSpec job = MakeJob(R"(
version: 1
model: {name: channels, classes: 3}
dataset:
  train:
    type: image_list
    root: )" + scratch_.path() + R"(
    list: list.txt
    batch_size: 2
    loader: {num_workers: 0}
    transforms:
      - DecodeImage: {}
      - ResizeImage: {size: 1}
      - NormalizeImage: {mean: [0, 0, 0], std: [0.001, 0.001, 0.001]}
loss: {name: cross_entropy}
optimizer: )" + optimizer + R"(
train: {epochs: 3}
checkpoint: {resume: none}
)",
                                scratch_.File("output"), overrides);
    const auto run = TrainRun::Open(job);
    CHECK_OK(run);
    std::vector<float> weights;
    for (int i = 0; i < 3; ++i) {
      CHECK_OK((*run)->trainer().Step());
      weights.push_back(ValuesOf((*run)->session(), "w")[1]);
    }
    return weights;
  }

  void ExpectWeights(const std::string& optimizer, const std::vector<double>& wanted,
                     const std::vector<std::string>& overrides = {}) {
    SCOPED_TRACE(optimizer);
    const std::vector<float> weights = Weights(optimizer, overrides);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(weights[i], wanted[i], 3e-7) << i;
  }

  const ScratchFolder scratch_;
};

TEST_F(ConstantGradient, AdamWIsNotAdamWithL2) {
  ExpectWeights("{name: adamw, lr: 0.1, weight_decay: 0.1}",
                {0.890000002, 0.781100004, 0.673289006});
  ExpectWeights("{name: adam, lr: 0.1, weight_decay: 0.1}",
                {0.900000002, 0.800047340, 0.700174575});
}

TEST_F(ConstantGradient, SgdAndMomentum) {
  ExpectWeights("{name: sgd, lr: 0.1}", {0.95, 0.90, 0.85});
  double w = 1, velocity = 0;
  std::vector<double> wanted;
  for (int i = 0; i < 3; ++i) {
    velocity = 0.9 * velocity + 0.5 + 0.1 * w;
    w -= 0.1 * velocity;
    wanted.push_back(w);
  }
  EXPECT_NEAR(wanted[2], 0.666274, 1e-6);
  ExpectWeights("{name: momentum, momentum: 0.9, lr: 0.1, weight_decay: 0.1}", wanted);
}

TEST_F(ConstantGradient, Nesterov) {
  double w = 1, velocity = 0;
  std::vector<double> wanted;
  for (int i = 0; i < 3; ++i) {
    velocity = 0.9 * velocity + 0.5;
    wanted.push_back(w -= 0.1 * (0.5 + 0.9 * velocity));
  }
  ExpectWeights("{name: momentum, momentum: 0.9, lr: 0.1, use_nesterov: true}", wanted);
}

// The only tensor is (w0, w1, 1): its norm and that of its step are known.
TEST_F(ConstantGradient, LambAndLars) {
  double a = 1, b = 1, velocity_a = 0, velocity_b = 0;
  std::vector<double> wanted;
  for (int i = 0; i < 3; ++i) {
    const double norm = std::sqrt(a * a + b * b + 1);
    const double rate = 0.1 * 0.02 * norm / std::sqrt(0.5);
    velocity_a = 0.9 * velocity_a - rate * 0.5;
    velocity_b = 0.9 * velocity_b + rate * 0.5;
    a -= velocity_a;
    wanted.push_back(b -= velocity_b);
  }
  ExpectWeights("{name: lars, lr: 0.1, trust: 0.02, weight_decay: 0}", wanted);
  // Equal gradients make Adam's step the sign, (-1, 1, 0).
  a = b = 1;
  wanted.clear();
  for (int i = 0; i < 3; ++i) {
    const double rate = 0.1 * std::sqrt(a * a + b * b + 1) / std::sqrt(2.0);
    a += rate;
    wanted.push_back(b -= rate);
  }
  ExpectWeights("{name: lamb, lr: 0.1, weight_decay: 0, epsilon: 1.0e-12}", wanted);
}

TEST_F(ConstantGradient, ClippingByValue) {
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: {value: 0.2}}", {0.98, 0.96, 0.94});
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: {value: 0.6}}", {0.95, 0.90, 0.85});
}

// The norm of (-0.5, 0.5, 0) is clipped to 0.1; decay comes after clipping.
TEST_F(ConstantGradient, ClippingByTheGlobalNorm) {
  const double g = 0.1 / std::sqrt(2.0);
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: 0.1}", {1 - 0.1 * g, 1 - 0.2 * g, 1 - 0.3 * g});
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: 10}", {0.95, 0.90, 0.85});
  double w = 1;
  std::vector<double> wanted;
  for (int i = 0; i < 3; ++i) wanted.push_back(w -= 0.1 * (g + 0.1 * w));
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: 0.1, weight_decay: 0.1}", wanted);
}

// Each gradient has a norm of its own; here is only one.
TEST_F(ConstantGradient, ClippingByTheNormOfEach) {
  const double g = 0.1 / std::sqrt(2.0);
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: {norm: 0.1}}",
                {1 - 0.1 * g, 1 - 0.2 * g, 1 - 0.3 * g});
  ExpectWeights("{name: sgd, lr: 0.1, grad_clip: {norm: 10}}", {0.95, 0.90, 0.85});
}

TEST_F(ConstantGradient, WeightOfTheLoss) {
  ExpectWeights("{name: sgd, lr: 0.1}", {0.90, 0.80, 0.70}, {"loss.weight=2"});
}

// In residual networks the classifier keeps the rate, the stem has the least; the weights after one
// update tell the rates apart.
TEST(Optimizers, LayersHaveRatesOfTheirOwn) {
  const auto weights = [](const std::string& optimizer, const ScratchFolder& scratch) {
    const auto run = TrainRun::Open(MakeJob(std::string(R"(
version: 1
model: {name: resnet18, classes: 4, stem: small, width: 4}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 12, 12], samples: 16, batch_size: 16,
          loader: {num_workers: 0}}
loss: {name: cross_entropy}
train: {epochs: 1}
optimizer: )") + optimizer,
                                            scratch.File(std::to_string(optimizer.size()))));
    CHECK_OK(run);
    const char* const names[] = {"conv1.weight",
                                 "bn1.bias",
                                 "layer1.0.conv1.weight",
                                 "layer3.1.bn2.weight",
                                 "layer4.0.downsample.0.weight",
                                 "fc.weight",
                                 "fc.bias"};
    std::vector<std::vector<float>> before, after;
    for (const char* name : names) before.push_back(ValuesOf((*run)->session(), name));
    CHECK_OK((*run)->trainer().Step());
    for (const char* name : names) after.push_back(ValuesOf((*run)->session(), name));
    // The length of each step.
    std::vector<double> steps;
    for (size_t i = 0; i < before.size(); ++i) {
      double squares = 0;
      for (size_t k = 0; k < before[i].size(); ++k) {
        squares += std::pow(after[i][k] - before[i][k], 2);
      }
      steps.push_back(std::sqrt(squares));
    }
    return steps;
  };
  const ScratchFolder scratch;
  const std::vector<double> plain = weights("{name: sgd, lr: 0.1}", scratch);
  const auto ratios = [&](const std::string& more) {
    const std::vector<double> steps = weights("{name: sgd, lr: 0.1, " + more + "}", scratch);
    std::vector<double> out;
    for (size_t i = 0; i < steps.size(); ++i) out.push_back(steps[i] / plain[i]);
    return out;
  };
  const auto expect = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-3) << i;
  };
  expect(ratios("layer_lr_decay: 0.5"), {1 / 32.0, 1 / 32.0, 1 / 16.0, 1 / 4.0, 1 / 2.0, 1, 1});
  expect(ratios("layer_lr_factors: [0, 0.5, 1, 0.25, 2]"), {0, 0, 0.5, 0.25, 2, 1, 1});
}

// Four epochs over waves that a convolution can tell apart.
TEST(Optimizers, EachLowersTheLoss) {
  for (const char* optimizer :
       {"{name: sgd, lr: 0.1}", "{name: momentum, lr: 0.05}",
        "{name: momentum, lr: 0.05, use_nesterov: true}", "{name: adam, lr: 0.005}",
        "{name: adamw, lr: 0.005}", "{name: lamb, lr: 0.02}", "{name: lars, lr: 0.05, trust: 0.1}",
        "{name: sgd, lr: 0.3, grad_clip: 1.0}",
        "{name: momentum, lr: 0.05, grad_clip: {value: 0.1}}"}) {
    SCOPED_TRACE(optimizer);
    const ScratchFolder scratch;
    TrainToEnd(MakeJob(std::string(R"(
version: 1
model: {name: resnet18, classes: 4, stem: small, width: 4}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 12, 12], noise: 0.2, samples: 64, batch_size: 16,
          loader: {num_workers: 1}}
  eval: {type: synthetic, classes: 4, shape: [3, 12, 12], noise: 0.2, first_sample: 64,
         samples: 64, batch_size: 16, loader: {num_workers: 1}}
loss: {name: cross_entropy}
optimizer: )") + optimizer +
                           R"(
train: {epochs: 8}
log: {every_iterations: 1}
)",
                       scratch.path()));
    const std::vector<double> losses = Numbers(scratch.path(), "train", "loss");
    ASSERT_EQ(losses.size(), 32u);
    const auto mean = [](auto from, auto to) {
      return std::accumulate(from, to, 0.0) / static_cast<double>(to - from);
    };
    const double first = mean(losses.begin(), losses.begin() + 4);
    const double last = mean(losses.end() - 4, losses.end());
    EXPECT_LT(last, 0.5 * first);
    // On pictures that it never saw chance is log(4) = 1.39.
    EXPECT_LT(Numbers(scratch.path(), "eval", "metrics.loss").back(), 1.0);
  }
}

}  // namespace
}  // namespace capstan
