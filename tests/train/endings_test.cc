// How runs end and begin again when something is amiss: divergence, sets too small for a batch,
// damaged checkpoints, nothing left to do, a job that was edited meanwhile.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "engine/base/status.h"
#include "tests/train/train_testing.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

// 6 iterations an epoch.
const char kJob[] = R"(
version: 1
model: {name: plain, classes: 4}
dataset:
  train: {type: synthetic, classes: 4, shape: [3, 6, 6], samples: 24, batch_size: 4,
          loader: {num_workers: 1}}
loss: {name: cross_entropy}
optimizer: {name: sgd, lr: 0.1}
train: {epochs: 2}
checkpoint: {every_iterations: 2, keep: 10}
log: {every_iterations: 1}
)";

std::string Latest(const std::string& output_dir) {
  return fs::read_symlink(CheckpointsFolder(output_dir) + "/latest").string();
}

// The message of the error that opening a run must end with.
std::string OpeningError(const JobSpec& job) {
  const auto run = TrainRun::Open(job);
  return run.ok() ? "no error" : MessageOf(run.status());
}

TEST(Divergence, KeepsTheCheckpointBefore) {
  const ScratchFolder scratch;
  // From iteration 7 on weights of 1e29, whose scores overflow.
  const JobSpec job =
      MakeJob(kJob, scratch.path(),
              {"optimizer.lr={name: piecewise, decay_epochs: [1], values: [0.1, 1.0e+30]}"});
  auto run = TrainRun::Open(job);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto end = (*run)->trainer().Train();
  EXPECT_EQ(end.status().code(), absl::StatusCode::kOutOfRange) << end.status();
  const std::string message = MessageOf(end.status());
  EXPECT_TRUE(Contains(message, "training diverged"));
  EXPECT_TRUE(Contains(message, "the same command goes on from iteration 6"));
  EXPECT_EQ((*run)->trainer().iteration(), 7);
  EXPECT_EQ(Latest(job.output_dir), CheckpointName(6));
}

// The loss was still fine, and no further one would have told.
TEST(Divergence, WeightsThatAreNotFiniteAreNotSaved) {
  const ScratchFolder scratch;
  const JobSpec job =
      MakeJob(kJob, scratch.path(),
              {"optimizer.lr={name: piecewise, decay_epochs: [1], values: [0.1, 1.0e+60]}",
               "train.max_iterations=7"});
  auto run = TrainRun::Open(job);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto end = (*run)->trainer().Train();
  EXPECT_EQ(end.status().code(), absl::StatusCode::kOutOfRange) << end.status();
  EXPECT_TRUE(Contains(MessageOf(end.status()), "fc.bias holds NaN or infinity at iteration 7"));
  EXPECT_EQ(Latest(job.output_dir), CheckpointName(6));
}

// LBL-08
TEST(SmallSets, EvaluationCoversThemAndTrainingSaysSo) {
  const ScratchFolder scratch;
  const JobSpec job =
      MakeJob(kJob, scratch.path(),
              {"dataset.eval={type: synthetic, classes: 4, shape: [3, 6, 6], samples: 20, "
               "batch_size: 64}"});
  TrainToEnd(job);
  EXPECT_EQ(Numbers(job.output_dir, "eval", "samples"), (std::vector<double>{20, 20}));

  const std::vector<std::string> small = {"dataset.train.samples=5", "dataset.train.batch_size=8"};
  EXPECT_TRUE(Contains(OpeningError(MakeJob(kJob, scratch.File("small"), small)),
                       "5 samples, batch 8, drop_last: no step possible"));

  Spill(scratch.File("empty.txt"), "");
  const std::string list =
      "{type: image_list, root: " + scratch.path() +
      ", list: empty.txt, batch_size: 4, transforms: [{DecodeImage: {}}, {ResizeImage: {size: 6}}, "
      "{NormalizeImage: {}}]}";
  for (const char* set : {"dataset.train", "dataset.eval"}) {
    const std::string error =
        OpeningError(MakeJob(kJob, scratch.File("empty"), {std::string(set) + "=" + list}));
    EXPECT_TRUE(Contains(error, "empty.txt")) << set;
    EXPECT_TRUE(Contains(error, set));
  }
}

// BN-02: batch norm over a last batch of one sample.
TEST(SmallSets, BatchNormOverOneSample) {
  const ScratchFolder scratch;
  const std::vector<std::string> overrides = {"model.name=pooled_norm",
                                              "dataset.train.samples=1201", "train.epochs=1",
                                              "checkpoint.every_iterations=null"};
  std::vector<std::string> with_tail = overrides;
  with_tail.push_back("dataset.train.drop_last=false");
  EXPECT_TRUE(Contains(OpeningError(MakeJob(kJob, scratch.File("tail"), with_tail)),
                       "batch norm over one value per channel"));

  const JobSpec job = MakeJob(kJob, scratch.File("dropped"), overrides);
  const std::unique_ptr<TrainRun> run = TrainToEnd(job);
  EXPECT_EQ(run->trainer().iteration(), 300);
  EXPECT_TRUE(Contains(LogText(job.output_dir), "1 of 1201 samples are left out of each epoch"));
  for (const char* state : {"bn.running_mean", "bn.running_var"}) {
    for (const float v : ValuesOf(run->session(), state)) EXPECT_TRUE(std::isfinite(v)) << state;
  }
}

// CKPT-06
TEST(Resuming, AFinishedRunDoesNothing) {
  const ScratchFolder scratch;
  const JobSpec job = MakeJob(kJob, scratch.path());
  TrainToEnd(job);
  const std::vector<double> iterations = Numbers(job.output_dir, "train", "iteration");
  const std::vector<std::string> checkpoints = NamesIn(CheckpointsFolder(job.output_dir));
  ASSERT_EQ(iterations.size(), 12u);
  const std::unique_ptr<TrainRun> again = TrainToEnd(job);
  EXPECT_EQ(again->trainer().iteration(), 12);
  EXPECT_TRUE(Contains(LogText(job.output_dir), "nothing to do: all 12 iterations are done"));
  EXPECT_EQ(Numbers(job.output_dir, "train", "iteration"), iterations);
  EXPECT_EQ(NamesIn(CheckpointsFolder(job.output_dir)), checkpoints);
}

TEST(Resuming, NothingToResumeFrom) {
  const ScratchFolder scratch;
  JobSpec job = MakeJob(kJob, scratch.path());
  {
    // Ends before its first checkpoint.
    auto run = TrainRun::Open(job);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_TRUE((*run)->trainer().Step().ok());
  }
  auto run = TrainRun::Open(job);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ((*run)->trainer().iteration(), 0);
  EXPECT_TRUE(Contains(LogText(job.output_dir), "starting at iteration 0: no checkpoint in " +
                                                    CheckpointsFolder(job.output_dir)));
  run = absl::CancelledError("closed");

  fs::create_directory(scratch.File("nothing"));
  for (const char* folder : {"nothing", "absent"}) {
    job.checkpoint.resume = scratch.File(folder);
    EXPECT_TRUE(Contains(OpeningError(job), scratch.File(folder)));
  }
}

// CKPT-02 as a run sees it; engine/checkpoint tests what counts as damage.
TEST(Resuming, ADamagedCheckpointIsPassedOver) {
  const ScratchFolder scratch;
  const JobSpec job = MakeJob(kJob, scratch.File("sound"), {"train.max_iterations=6"});
  TrainToEnd(job);
  const auto cut = [](double share) {
    return [share](const std::string& path) {
      const std::string bytes = Slurp(path);
      Spill(path, bytes.substr(0, static_cast<size_t>(static_cast<double>(bytes.size()) * share)));
    };
  };
  const std::vector<std::function<void(const std::string&)>> damages = {
      cut(0),
      cut(0.01),
      cut(0.5),
      cut(0.99),
      [](const std::string& path) { fs::remove(path); },
      [](const std::string& path) {
        std::string bytes = Slurp(path);
        bytes[bytes.size() / 2] ^= 4;
        Spill(path, bytes);
      }};
  for (size_t i = 0; i < damages.size(); ++i) {
    for (const char* member : {"weights.safetensors", "state.json"}) {
      SCOPED_TRACE(std::to_string(i) + " " + member);
      JobSpec damaged = job;
      damaged.output_dir = scratch.File(std::to_string(i) + member);
      fs::copy(job.output_dir, damaged.output_dir,
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      const std::string newest = CheckpointsFolder(damaged.output_dir) + "/" + CheckpointName(6);
      damages[i](newest + "/" + member);
      {
        const auto run = TrainRun::Open(damaged);
        ASSERT_TRUE(run.ok()) << run.status();
        EXPECT_EQ((*run)->trainer().iteration(), 4);
        EXPECT_TRUE(Contains(LogText(damaged.output_dir), newest));
        EXPECT_TRUE(Contains(LogText(damaged.output_dir), member));
        EXPECT_TRUE(Contains(LogText(damaged.output_dir), "(iteration 4)"));
      }
      // Asked for by name, or the only one, it is an error.
      JobSpec named = damaged;
      named.checkpoint.resume = newest;
      EXPECT_TRUE(Contains(OpeningError(named), newest + "/" + member));
      for (const int64_t sound : {2, 4}) {
        fs::remove_all(CheckpointsFolder(damaged.output_dir) + "/" + CheckpointName(sound));
      }
      EXPECT_TRUE(Contains(OpeningError(damaged), member));
      EXPECT_TRUE(Contains(OpeningError(damaged), "checkpoint.resume: none"));
    }
  }
}

// The file wins: what is left of the training is counted from where the run stands.
TEST(Resuming, BatchesAndAccumulationMayChange) {
  const std::string eval =
      "dataset.eval={type: synthetic, classes: 4, shape: [3, 6, 6], samples: 4, batch_size: 4}";
  struct Edit {
    const char* key;
    int64_t iterations;           // when all 4 epochs are done
    std::vector<double> eval_at;  // iterations of the evaluations of epochs 3 and 4
  };
  // 9 iterations were done: an epoch and a half, 12 samples left of this one.
  for (const Edit& edit : {Edit{"strategy.accumulate=2", 17, {11, 14, 17}},
                           Edit{"dataset.train.batch_size=2", 39, {15, 27, 39}},
                           Edit{"dataset.train.batch_size=12", 14, {10, 12, 14}},
                           Edit{"train.epochs=3", 18, {12, 18}}}) {
    SCOPED_TRACE(edit.key);
    const ScratchFolder scratch;
    const std::vector<std::string> overrides = {"train.epochs=4", eval};
    {
      auto run = TrainRun::Open(MakeJob(kJob, scratch.path(), overrides));
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ((*run)->trainer().total_iterations(), 24);
      for (int i = 0; i < 9; ++i) ASSERT_TRUE((*run)->trainer().Step().ok());
      ASSERT_TRUE((*run)->trainer().Save().ok());
    }
    std::vector<std::string> edited = overrides;
    edited.push_back(edit.key);
    const std::unique_ptr<TrainRun> run = TrainToEnd(MakeJob(kJob, scratch.path(), edited));
    EXPECT_EQ(run->trainer().iteration(), edit.iterations);
    EXPECT_TRUE(Contains(LogText(scratch.path()), "job changed: "));
    std::vector<double> eval_at = {6};
    eval_at.insert(eval_at.end(), edit.eval_at.begin(), edit.eval_at.end());
    EXPECT_EQ(Numbers(scratch.path(), "eval", "iteration"), eval_at);
    std::vector<double> epochs;
    for (size_t i = 1; i <= eval_at.size(); ++i) epochs.push_back(static_cast<double>(i));
    EXPECT_EQ(Numbers(scratch.path(), "eval", "epoch"), epochs);
  }
}

TEST(Resuming, AnotherModelIsRefused) {
  const ScratchFolder scratch;
  TrainToEnd(MakeJob(kJob, scratch.path()));
  const std::string error = OpeningError(MakeJob(kJob, scratch.path(), {"model.classes=5"}));
  EXPECT_TRUE(Contains(error, "model.classes"));
}

}  // namespace
}  // namespace capstan
