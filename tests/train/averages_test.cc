// Moving averages (train.ema): exact values, what evaluation reads, checkpoints with and without.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "tests/train/train_testing.h"

namespace capstan {
namespace {

// Scores (0, 1000, 0) with labels 0 and 1: the gradient of w is (-0.5, 0.5, 0) at every iteration,
// and with rate 2 the first weight goes 1, 2, 3, ..., the second 1, 0, -1, ...
class Averages : public testing::Test {
 protected:
  Averages() {
    WritePixel(scratch_.File("a.png"), 0, 255, 0);
    WritePixel(scratch_.File("b.png"), 0, 0, 0);
    Spill(scratch_.File("list.txt"), "a.png 0\na.png 1\n");
    Spill(scratch_.File("eval.txt"), "b.png 0\n");
  }

  JobSpec Job(const std::vector<std::string>& overrides) const {
    const std::string pictures = R"(
    type: image_list
    root: )" + scratch_.path() + R"(
    loader: {num_workers: 0}
    transforms:
      - DecodeImage: {}
      - ResizeImage: {size: 1}
      - NormalizeImage: {mean: [0, 0, 0], std: [0.001, 0.001, 0.001]}
)";
    return MakeJob(R"(
version: 1
model: {name: channels, classes: 3}
dataset:
  train:
    list: list.txt
    batch_size: 2)" + pictures +
                       R"(
  eval:
    list: eval.txt
    batch_size: 1)" + pictures +
                       R"(
loss: {name: cross_entropy}
optimizer: {name: sgd, lr: 2}
train: {epochs: 3}
)",
                   scratch_.File("output"), overrides);
  }

  static float Average(Session& session, size_t i) { return ValuesOf(session, "w@ema")[i]; }

  std::string Checkpoint(int64_t iteration) const {
    return CheckpointsFolder(scratch_.File("output")) + "/" + CheckpointName(iteration);
  }

  const ScratchFolder scratch_;
};

TEST_F(Averages, WithAndWithoutARestart) {  // CKPT-03
  {
    auto run = TrainRun::Open(Job({"train.ema=0.9", "checkpoint.resume=none"}));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(Average((*run)->session(), 0), 1);
    ASSERT_TRUE((*run)->trainer().Step().ok());
    EXPECT_EQ(ValuesOf((*run)->session(), "w")[0], 2);
    EXPECT_NEAR(Average((*run)->session(), 0), 1.1, 1e-7);
    ASSERT_TRUE((*run)->trainer().Save().ok());
    ASSERT_TRUE((*run)->trainer().Step().ok());
    EXPECT_NEAR(Average((*run)->session(), 0), 1.29, 2e-7);
    EXPECT_NEAR(Average((*run)->session(), 1), 0.71, 2e-7);
    EXPECT_EQ(Average((*run)->session(), 2), 1);
  }
  auto run = TrainRun::Open(Job({"train.ema=0.9", "checkpoint.resume=" + Checkpoint(1)}));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE((*run)->trainer().Step().ok());
  EXPECT_NEAR(Average((*run)->session(), 0), 1.29, 2e-7);
  ASSERT_TRUE((*run)->trainer().Save().ok());
  const auto reader = CheckpointReader::Open(Checkpoint(2));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->state().ema_updates, 2);
  EXPECT_EQ(reader->Groups(), (std::vector<std::string>{"weights", "optimizer", "ema"}));
  HostTensor stored(*reader->Find("ema", "w"));
  ASSERT_TRUE(reader->Read("ema", "w", stored.view()).ok());
  EXPECT_EQ(stored.Elements<float>()[0], Average((*run)->session(), 0));
}

// The picture is black: scores are the weights, and the loss is that of the averaged ones.
TEST_F(Averages, EvaluationReadsThem) {
  for (const bool averaged : {true, false}) {
    std::vector<std::string> overrides = {"checkpoint.resume=none", "eval.metric=loss"};
    if (averaged) overrides.push_back("train.ema={decay: 0.9}");
    const JobSpec job = Job(overrides);
    TrainToEnd(job);
    const std::vector<double> losses = Numbers(job.output_dir, "eval", "metrics.loss");
    ASSERT_EQ(losses.size(), 3u);
    double w = 1, a = 1;
    for (const double loss : losses) {
      a = averaged ? 0.9 * a + 0.1 * (w + 1) : w + 1;
      w += 1;
      // The second weight falls as much as the first one rises.
      const double wanted = std::log(std::exp(a) + std::exp(2 - a) + std::exp(1)) - a;
      EXPECT_NEAR(loss, wanted, 1e-6) << averaged;
    }
  }
}

// Running statistics move with every batch, their averages with every update.
TEST_F(Averages, OfRunningStatistics) {
  const JobSpec job = MakeJob(R"(
version: 1
model: {name: pooled_norm, classes: 4}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 6, 6], samples: 16, batch_size: 4,
          loader: {num_workers: 0}}
loss: {name: cross_entropy}
optimizer: {name: sgd, lr: 0.1}
strategy: {accumulate: 2}
train: {epochs: 1, ema: 0.5}
)",
                              scratch_.File("statistics"));
  auto run = TrainRun::Open(job);
  ASSERT_TRUE(run.ok()) << run.status();
  std::vector<float> mean(8, 0), variance(8, 1);
  for (int update = 0; update < 2; ++update) {
    ASSERT_TRUE((*run)->trainer().Step().ok());
    Session& session = (*run)->session();
    const std::vector<float> now = ValuesOf(session, "bn.running_mean");
    const std::vector<float> spread = ValuesOf(session, "bn.running_var");
    for (size_t i = 0; i < 8; ++i) {
      mean[i] = 0.5f * (mean[i] + now[i]);
      variance[i] = 0.5f * (variance[i] + spread[i]);
      EXPECT_NEAR(ValuesOf(session, "bn.running_mean@ema")[i], mean[i], 1e-6);
      EXPECT_NEAR(ValuesOf(session, "bn.running_var@ema")[i], variance[i], 1e-6);
      EXPECT_NE(now[i], 0);
    }
  }
}

// They begin at the weights of the checkpoint, and go when the job no longer wants them.
TEST_F(Averages, TurnedOnAndOffBetweenRuns) {
  TrainToEnd(Job({"train.epochs=1"}));
  {
    const auto run = TrainToEnd(Job({"train.epochs=2", "train.ema=0.5"}));
    EXPECT_EQ(Average(run->session(), 0), 2.5);
  }
  TrainToEnd(Job({}));
  const auto reader = CheckpointReader::Open(Checkpoint(3));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->Group("ema"), nullptr);
  EXPECT_EQ(reader->state().ema_updates, 0);
}

}  // namespace
}  // namespace capstan
