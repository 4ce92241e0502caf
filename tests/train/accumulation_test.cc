// Several batches for one update: equal to one large batch, divided by the targets that count,
// cut at the end of an epoch, and one iteration of the schedule.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/train/metrics.h"
#include "tests/train/train_testing.h"

namespace capstan {
namespace {

const char kPlainJob[] = R"(
version: 1
model: {name: plain, classes: 4, dropout: 0.25}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 8, 8], samples: 24, batch_size: 8,
          loader: {num_workers: 1}}
loss: {name: cross_entropy}
optimizer: {name: momentum, momentum: 0.9, lr: 0.1}
train: {epochs: 5}
log: {every_iterations: 1}
)";

void ExpectNear(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

// No sample meets another one in this net, and dropout draws by the place in the update.
TEST(Accumulation, EqualsOneLargeBatch) {
  const ScratchFolder scratch;
  const std::unique_ptr<TrainRun> whole = TrainToEnd(MakeJob(kPlainJob, scratch.File("whole")));
  const std::vector<double> losses = Numbers(scratch.File("whole"), "train", "loss");
  ASSERT_EQ(losses.size(), 15u);
  for (const int64_t parts : {2, 8}) {
    const std::string name = std::to_string(parts);
    SCOPED_TRACE(name + " batches an update");
    const std::unique_ptr<TrainRun> run = TrainToEnd(MakeJob(
        kPlainJob, scratch.File(name),
        {"strategy.accumulate=" + name, "dataset.train.batch_size=" + std::to_string(8 / parts)}));
    const std::vector<double> parts_losses = Numbers(scratch.File(name), "train", "loss");
    ASSERT_EQ(parts_losses.size(), losses.size());
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(parts_losses[i], losses[i], 1e-5) << i;
    for (const char* state : {"conv.weight", "fc.weight", "fc.bias", "conv.weight@momentum"}) {
      SCOPED_TRACE(state);
      ExpectNear(ValuesOf(run->session(), state), ValuesOf(whole->session(), state), 1e-5);
    }
  }
}

// Pictures of one pixel for the model `channels`: scores are pixel / 255 / std.
class PixelJob {
 public:
  struct Sample {
    uint8_t red, green, blue;
    int label;
  };

  PixelJob(const std::vector<Sample>& samples, const std::vector<double>& std) {
    std::string list;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& s = samples[i];
      const std::string name = std::to_string(i) + ".png";
      WritePixel(scratch_.File(name), s.red, s.green, s.blue);
      list += name + " " + std::to_string(s.label) + "\n";
    }
    Spill(scratch_.File("list.txt"), list);
    char text[200];
    std::snprintf(text, sizeof(text), "[%.17g, %.17g, %.17g]", std[0], std[1], std[2]);
    std_ = text;
  }

  JobSpec Make(const std::string& name, const std::vector<std::string>& overrides) const {
    const std::string root = scratch_.path();
    return MakeJob(R"(
version: 1
model: {name: channels, classes: 3}
dataset:
  train:
    type: image_list
    root: )" + root + R"(
    list: list.txt
    batch_size: 4
    shuffle: false
    drop_last: false
    loader: {num_workers: 0}
    transforms:
      - DecodeImage: {}
      - ResizeImage: {size: 1}
      - NormalizeImage: {mean: [0, 0, 0], std: )" +
                       std_ + R"(}
loss: {name: cross_entropy}
optimizer: {name: sgd, lr: 1}
train: {epochs: 1}
log: {every_iterations: 1}
)",
                   scratch_.File(name), overrides);
  }
  std::string Output(const std::string& name) const { return scratch_.File(name); }

 private:
  const ScratchFolder scratch_;
  std::string std_;
};

// LOSS-02: of the first batch 3 targets count, with losses of 2 each; of the second one, of 8.
TEST(Accumulation, DividesByTheTargetsThatCount) {
  // Scores (0, a, 0) or (0, 0, b) and label 0: the loss is log(2 + exp(a)).
  const double a = std::log(std::exp(2.0) - 2), b = std::log(std::exp(8.0) - 2);
  const PixelJob::Sample two = {0, 255, 0, 0}, eight = {0, 0, 255, 0}, ignored = {0, 255, 255, 1};
  const PixelJob pixels({two, ignored, two, two, ignored, ignored, eight, ignored},
                        {1, 1 / a, 1 / b});
  const double w0 = 1 - (3 * (std::exp(-2.0) - 1) + (std::exp(-8.0) - 1)) / 4;
  const std::vector<std::vector<std::string>> forms = {
      {"strategy.accumulate=2"},
      {"dataset.train.batch_size=8"},
      {"strategy.accumulate=8", "dataset.train.batch_size=1"}};
  for (size_t i = 0; i < forms.size(); ++i) {
    const std::string name = std::to_string(i);
    SCOPED_TRACE(forms[i][0]);
    std::vector<std::string> overrides = forms[i];
    overrides.push_back("loss.ignore_index=1");
    const std::unique_ptr<TrainRun> run = TrainToEnd(pixels.Make(name, overrides));
    const std::vector<double> losses = Numbers(pixels.Output(name), "train", "loss");
    ASSERT_EQ(losses.size(), 1u);
    EXPECT_NEAR(losses[0], 3.5, 1e-6);
    EXPECT_NEAR(ValuesOf(run->session(), "w")[0], w0, 1e-6);
  }
}

TEST(Accumulation, NoTargetThatCountsIsNoLoss) {
  const PixelJob pixels({{0, 255, 0, 1}, {255, 0, 0, 1}}, {1, 1, 1});
  const std::unique_ptr<TrainRun> run = TrainToEnd(pixels.Make("out", {"loss.ignore_index=1"}));
  EXPECT_EQ(Numbers(pixels.Output("out"), "train", "loss"), std::vector<double>{0});
  EXPECT_EQ(ValuesOf(run->session(), "w"), (std::vector<float>{1, 1, 1}));
}

// 7 samples in batches of 2 and updates of 2 batches: samples 0-3, then 4-6; with drop_last 4-5.
TEST(Accumulation, TheEndOfAnEpochIsAnUpdate) {
  std::vector<PixelJob::Sample> samples;
  std::vector<double> losses;
  for (int i = 0; i < 7; ++i) {
    samples.push_back({0, static_cast<uint8_t>(i * 30), 0, 0});
    losses.push_back(std::log(2 + std::exp(i * 30 / 255.0)));
  }
  const auto mean = [&](size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; ++i) sum += losses[i];
    return sum / static_cast<double>(to - from);
  };
  const PixelJob pixels(samples, {1, 1, 1});
  for (const bool drop_last : {false, true}) {
    const std::string name = drop_last ? "dropped" : "kept";
    TrainToEnd(pixels.Make(
        name,
        {"dataset.train.batch_size=2", "strategy.accumulate=2", "optimizer.lr=0", "train.epochs=3",
         std::string("dataset.train.drop_last=") + (drop_last ? "true" : "false")}));
    const std::vector<double> told = Numbers(pixels.Output(name), "train", "loss");
    ASSERT_EQ(told.size(), 6u);
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_NEAR(told[i], i % 2 == 0 ? mean(0, 4) : mean(4, drop_last ? 6 : 7), 1e-6)
          << name << " " << i;
    }
    EXPECT_EQ(Numbers(pixels.Output(name), "train", "epoch"),
              (std::vector<double>{0, 0, 1, 1, 2, 2}));
  }
}

// LR-01 and LR-02: rate(u) counts finished updates, whatever an update is made of.
TEST(Schedule, CountsUpdates) {
  const ScratchFolder scratch;
  const std::vector<std::string> schedule = {
      "train.max_iterations=20", "train.epochs=null",
      "optimizer.lr={name: cosine, base: 0.1, warmup_iterations: 5}"};
  std::vector<double> all;
  for (const char* accumulate : {"1", "4"}) {
    std::vector<std::string> overrides = schedule;
    overrides.push_back(std::string("strategy.accumulate=") + accumulate);
    const JobSpec job = MakeJob(kPlainJob, scratch.File(accumulate), overrides);
    TrainToEnd(job);
    const std::vector<double> rates = Numbers(job.output_dir, "train", "lr");
    ASSERT_EQ(rates.size(), 20u);
    for (size_t u = 0; u <= 5; ++u) EXPECT_NEAR(rates[u], 0.02 * static_cast<double>(u), 1e-12);
    EXPECT_NEAR(rates[7], 0.0956772729, 1e-10);
    EXPECT_NEAR(rates[8], 0.0904508497, 1e-10);
    EXPECT_NEAR(rates[9], 0.0834565303, 1e-10);
    EXPECT_TRUE(all.empty() || all == rates);
    all = rates;
  }
  const JobSpec job = MakeJob(kPlainJob, scratch.File("resumed"), schedule);
  {
    auto run = TrainRun::Open(job);
    ASSERT_TRUE(run.ok()) << run.status();
    for (int i = 0; i < 8; ++i) ASSERT_TRUE((*run)->trainer().Step().ok());
    ASSERT_TRUE((*run)->trainer().Save().ok());
  }
  TrainToEnd(job);
  EXPECT_EQ(Numbers(job.output_dir, "train", "lr"), all);
}

}  // namespace
}  // namespace capstan
