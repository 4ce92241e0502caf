// Evaluation sees every sample exactly once, and the same weights as training, whatever the batch.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/status.h"
#include "engine/train/evaluate.h"
#include "engine/train/model_state.h"
#include "tests/train/train_testing.h"

namespace capstan {
namespace {

// EVAL-01: ten pictures whose scores are their channels. Samples 0 to 7 are right, 8 and 9 wrong;
// every loss is another one. `with_broken` puts a file that is no picture among them.
class TenPictures {
 public:
  explicit TenPictures(bool with_broken) {
    std::string list;
    for (int i = 0; i < 10; ++i) {
      const int pixel = 20 + 20 * i;
      const int label = i < 8 ? 0 : 1;
      const std::string name = std::to_string(i) + ".png";
      WritePixel(scratch_.File(name), static_cast<uint8_t>(pixel), 0, 0);
      list += name + " " + std::to_string(label) + "\n";
      if (with_broken && i == 5) list += "broken.png 0\n";
      const double score = pixel / 255.0;
      loss_ += (std::log(2 + std::exp(score)) - (label == 0 ? score : 0)) / 10;
    }
    Spill(scratch_.File("broken.png"), "<html></html>");
    Spill(scratch_.File("list.txt"), list);
  }

  // The folder of a run that evaluates once, with weights that leave the scores alone.
  std::string Evaluated(int64_t batch_size, const std::vector<std::string>& overrides = {}) const {
    const std::string output = scratch_.File("output_" + std::to_string(batch_size));
    const std::string pictures = "root: " + scratch_.path() + R"(
    list: list.txt
    bad_samples: {limit: 0.2}
    loader: {num_workers: 1}
    transforms:
      - DecodeImage: {}
      - ResizeImage: {size: 1}
      - NormalizeImage: {mean: [0, 0, 0], std: [1, 1, 1]}
)";
    std::vector<std::string> all = overrides;
    all.push_back("dataset.eval.batch_size=" + std::to_string(batch_size));
    TrainToEnd(MakeJob(R"(
version: 1
model: {name: channels, classes: 3}
dataset:
  train:
    type: image_list
    batch_size: 5
    )" + pictures + R"(
  eval:
    type: image_list
    batch_size: 1
    )" + pictures + R"(
loss: {name: cross_entropy}
optimizer: {name: sgd, lr: 0}
train: {epochs: 1}
)",
                       output, all));
    return output;
  }
  double mean_loss() const { return loss_; }

 private:
  const ScratchFolder scratch_;
  double loss_ = 0;
};

TEST(Evaluation, MeanOverSamplesAtAnyBatchSize) {
  for (const bool with_broken : {false, true}) {
    const TenPictures pictures(with_broken);
    for (int64_t batch_size = 1; batch_size <= 11; ++batch_size) {
      SCOPED_TRACE(testing::Message() << "batch " << batch_size << ", broken " << with_broken);
      const std::string output = pictures.Evaluated(batch_size);
      EXPECT_EQ(Numbers(output, "eval", "metrics.top1"), std::vector<double>{0.8});
      EXPECT_EQ(Numbers(output, "eval", "metrics.top5"), std::vector<double>{1});
      EXPECT_EQ(Numbers(output, "eval", "samples"), std::vector<double>{10});
      const std::vector<double> losses = Numbers(output, "eval", "metrics.loss");
      ASSERT_EQ(losses.size(), 1u);
      EXPECT_NEAR(losses[0], pictures.mean_loss(), 1e-6);
      EXPECT_EQ(bool(Contains(LogText(output), "skipped broken.png (list.txt:7)")), with_broken);
    }
  }
}

// Ignored labels count nowhere: of the eight samples of class 0 none is left.
TEST(Evaluation, IgnoredLabelsDoNotCount) {
  const TenPictures pictures(false);
  const std::string output = pictures.Evaluated(4, {"loss.ignore_index=0"});
  EXPECT_EQ(Numbers(output, "eval", "metrics.top1"), std::vector<double>{0});
  EXPECT_EQ(Numbers(output, "eval", "samples"), std::vector<double>{10});
}

const char kTwoSizes[] = R"(
version: 1
model: {name: resnet18, classes: 4, stem: small, width: 4}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 12, 12], samples: 22, batch_size: 8,
          drop_last: false, loader: {num_workers: 1}}
  eval: {type: synthetic, classes: 4, shape: [3, 17, 17], first_sample: 22, samples: 13,
         batch_size: 8, loader: {num_workers: 1}}
loss: {name: cross_entropy}
optimizer: {name: momentum, lr: 0.05}
train: {epochs: 3}
)";

// Weights of a checkpoint in a session of its own that evaluates in other batches.
EvaluationResult EvaluateAgain(const JobSpec& job, const CheckpointReader& reader) {
  JobSpec eval_job = job;
  eval_job.dataset.train.reset();
  const auto setup = SetUpTraining(eval_job, TestTables());
  CHECK_OK(setup);
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  const auto session = Session::Create(setup->request, TestTables(), {}, device.get());
  CHECK_OK(session);
  CHECK_OK(RestoreState((*session)->executor(), StateGroup::kWeights, reader));
  const auto loader =
      OpenLoader(*eval_job.dataset.eval, setup->eval_images, {.mode = SamplerMode::kEvaluate});
  CHECK_OK(loader);
  auto result = EvaluateAll(**session, **loader, -100);
  CHECK_OK(result);
  return *std::move(result);
}

TEST(Evaluation, TwoSizesAndOddTailsShareOneSetOfWeights) {
  const ScratchFolder scratch;
  const JobSpec job = MakeJob(kTwoSizes, scratch.path());
  const std::unique_ptr<TrainRun> run = TrainToEnd(job);
  const Plan& plan = run->session().plan();
  for (const char* shapes : {"8x3x12x12", "6x3x12x12"}) {
    EXPECT_GE(plan.FindProgram(ProgramKind::kMicroFirst, shapes), 0) << shapes;
  }
  for (const char* shapes : {"8x3x17x17", "5x3x17x17"}) {
    EXPECT_GE(plan.FindProgram(ProgramKind::kEvaluate, shapes), 0) << shapes;
  }
  EXPECT_EQ(run->trainer().iteration(), 9);
  EXPECT_EQ(Numbers(job.output_dir, "eval", "samples"), (std::vector<double>{13, 13, 13}));

  const auto reader =
      CheckpointReader::Open(CheckpointsFolder(job.output_dir) + "/" + CheckpointName(9));
  ASSERT_TRUE(reader.ok()) << reader.status();
  JobSpec one_by_one = job;
  one_by_one.dataset.eval->batch_size = 1;
  const EvaluationResult again = EvaluateAgain(one_by_one, *reader);
  EXPECT_EQ(again.samples, 13);
  for (const auto& [name, value] : again.metrics) {
    EXPECT_NEAR(Numbers(job.output_dir, "eval", "metrics." + name).back(), value, 1e-5) << name;
  }
}

}  // namespace
}  // namespace capstan
