// Resuming a job that was edited: what is told of each key, what holds, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/status.h"
#include "tests/train/train_testing.h"

namespace capstan {
namespace {

// 3 iterations an epoch.
const char kJob[] = R"(
version: 1
model: {name: plain, classes: 4}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 6, 6], samples: 12, batch_size: 4,
          loader: {num_workers: 0}}
  eval: {type: synthetic, classes: 4, shape: [3, 6, 6], samples: 4, batch_size: 4}
loss: {name: cross_entropy}
optimizer: {name: momentum, lr: 0.1}
train: {epochs: 1}
log: {every_iterations: 1}
)";

class EditedJob : public testing::Test {
 protected:
  JobSpec Job(const std::vector<std::string>& overrides) const {
    return MakeJob(kJob, scratch_.path(), overrides);
  }
  std::string Error(const std::vector<std::string>& overrides) const {
    const auto run = TrainRun::Open(Job(overrides));
    return run.ok() ? "no error" : MessageOf(run.status());
  }
  std::string Log() const { return LogText(scratch_.path()); }

  const ScratchFolder scratch_;
};

TEST_F(EditedJob, EachChangeIsToldWithWhatHolds) {
  TrainToEnd(Job({}));
  TrainToEnd(Job({"train.epochs=2", "optimizer.lr=0.05", "log.every_iterations=3", "train.seed=43",
                  "model.pretrained=absent.pth", "strategy.accumulate=2", "train.ema=0.5"}));
  for (const char* line :
       {"job changed: model.pretrained: null -> absent.pth (not used: the weights are those of the "
        "checkpoint)\n",
        "job changed: optimizer.lr.base: 0.1 -> 0.05 (taken over)\n",
        "job changed: strategy.accumulate: 1 -> 2 (taken over)\n",
        "job changed: train.epochs: 1 -> 2 (taken over)\n",
        "job changed: train.seed: 42 -> 43 (taken over: for the draws from here on)\n",
        "job changed: train.ema.decay: not set -> 0.5 (taken over: averages begin at the weights "
        "of the checkpoint)\n",
        "job changed: log.every_iterations: 1 -> 3 (harmless)\n",
        "(iteration 3); changes of the job: 5 taken over, 1 harmless, 1 not used\n"}) {
    EXPECT_TRUE(Contains(Log(), line));
  }
  EXPECT_EQ(Log().find("train.ema: null"), std::string::npos);
  EXPECT_EQ(Numbers(scratch_.path(), "train", "lr"), (std::vector<double>{0.1, 0.1, 0.1, 0.05}));
  EXPECT_EQ(Numbers(scratch_.path(), "train", "iteration"), (std::vector<double>{1, 2, 3, 5}));
}

TEST_F(EditedJob, AnUnchangedOneSaysNothing) {
  TrainToEnd(Job({}));
  TrainToEnd(Job({}));
  EXPECT_TRUE(Contains(Log(), "(iteration 3)\n"));
  EXPECT_EQ(Log().find("changed"), std::string::npos);
}

TEST_F(EditedJob, WhatMayNotChangeIsRefusedAllAtOnce) {
  TrainToEnd(Job({}));
  const std::string error = Error({"model.classes=5", "optimizer.name=sgd"});
  EXPECT_TRUE(Contains(error,
                       "model.classes: was 4 when the checkpoint was written, now 5; a "
                       "model cannot change on resuming. Set it back, or start anew with "
                       "`checkpoint.resume: none`"));
  EXPECT_TRUE(Contains(error,
                       "optimizer.name: was momentum when the checkpoint was written, now "
                       "sgd; the state of one optimizer is not that of another one"));
  EXPECT_EQ(Log().find("resumed"), std::string::npos);
}

TEST_F(EditedJob, AdamAndAdamWShareTheirMoments) {
  TrainToEnd(Job({"optimizer.name=adam"}));
  const auto run = TrainRun::Open(Job({"optimizer.name=adamw", "train.epochs=2"}));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(Contains(Log(), "optimizer.name: adam -> adamw (taken over: with the moments so"));
  EXPECT_NE(ValuesOf((*run)->session(), "fc.weight@moment1")[0], 0);
}

// 90 % by one measure is no bar for another one.
TEST_F(EditedJob, AnotherMetricForgetsTheBest) {
  TrainToEnd(Job({"eval.metric=top5"}));
  const auto run = TrainToEnd(Job({"eval.metric=loss", "train.epochs=2"}));
  EXPECT_TRUE(Contains(Log(), "(taken over: the best so far is forgotten)"));
  const double loss = Numbers(scratch_.path(), "eval", "metrics.loss").back();
  EXPECT_EQ(run->trainer().best_metric(), loss);
}

// What was frozen has neither momentum nor averages.
TEST_F(EditedJob, FrozenParametersMayBeSetFree) {
  TrainToEnd(Job({"model.freeze=[conv]", "train.ema=0.5"}));
  {
    const auto run = TrainRun::Open(Job({"train.ema=0.5", "train.epochs=2"}));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(Contains(Log(), "2 tensors of optimizer state and averages begin anew"));
    Session& session = (*run)->session();
    EXPECT_EQ(ValuesOf(session, "conv.weight@momentum"), std::vector<float>(8 * 27, 0));
    EXPECT_EQ(ValuesOf(session, "conv.weight@ema"), ValuesOf(session, "conv.weight"));
    EXPECT_NE(ValuesOf(session, "fc.weight@momentum")[0], 0);
    EXPECT_NE(ValuesOf(session, "fc.weight@ema"), ValuesOf(session, "fc.weight"));
  }
  TrainToEnd(Job({"train.ema=0.5", "train.epochs=2"}));
  // And frozen again.
  TrainToEnd(Job({"model.freeze=[conv]", "train.ema=0.5", "train.epochs=3"}));
}

// Ids of class folders follow their names: another folder would move them.
TEST_F(EditedJob, ClassesStayWhatTheyWere) {
  const auto folders = [&](const std::string& root, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      std::filesystem::create_directories(scratch_.File(root + "/" + name));
      WritePixel(scratch_.File(root + "/" + name + "/0.png"), 100, 0, 0);
    }
    return "dataset.train={type: image_folder, root: " + scratch_.File(root) +
           ", batch_size: 1, transforms: [{DecodeImage: {}}, {ResizeImage: {size: 6}}, "
           "{NormalizeImage: {}}]}";
  };
  TrainToEnd(Job({folders("before", {"ant", "bee", "cow", "dog"})}));
  const std::string error = Error({folders("now", {"ant", "bat", "bee", "cow"})});
  EXPECT_TRUE(Contains(error,
                       "class 1 was \"bee\" when the checkpoint was written, now it is "
                       "\"bat\""));
  EXPECT_TRUE(Contains(error, "dataset.train"));
  TrainToEnd(Job({folders("moved", {"ant", "bee", "cow", "dog"}), "train.epochs=2"}));
}

}  // namespace
}  // namespace capstan
