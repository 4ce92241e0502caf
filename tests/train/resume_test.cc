// Stopping and going on changes no bit, and neither do loader threads, prefetch or cache.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>

#include "engine/kernel/kernel_row.h"
#include "engine/train/model_state.h"
#include "engine/train/verify_resume.h"
#include "tests/train/train_testing.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

// Everything that could depend on where a run began: random transforms, dropout, running
// statistics, moments, and epochs of 7 batches (the last of 3 samples) in updates of 3, 3 and 1.
const char kJob[] = R"(
version: 1
model: {name: resnet18, classes: 5, stem: small, width: 4, dropout: 0.3}
dataset:
  train:
    type: synthetic
    classes: 5
    shape: [3, 12, 12]
    samples: 27
    batch_size: 4
    drop_last: false
    loader: {num_workers: 2}
    transforms:
      - RandCropPad: {size: 10, padding: 2}
      - RandFlipImage: {}
      - RandAffine: {}
      - ColorJitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4}
      - NormalizeImage: {}
      - RandomErasing: {}
  eval: {type: synthetic, classes: 5, shape: [3, 12, 12], first_sample: 27, samples: 7, batch_size: 4}
loss: {name: cross_entropy, label_smoothing: 0.1}
optimizer:
  name: adamw
  grad_clip: 1.0
  lr: {name: cosine, base: 0.01, warmup_iterations: 5}
strategy: {accumulate: 3}
train: {epochs: 12, seed: 7}
log: {every_iterations: 1}
)";

absl::StatusOr<VerifyResumeReport> Verify(const JobSpec& job, const EngineTables& tables,
                                          const std::string& folder, int64_t points) {
  ASSIGN_OR_RETURN(const auto log, RunLog::Create({.output_dir = folder + "/log", .quiet = true}));
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  const std::unique_ptr<Comm> comm = MakeSingleComm();
  return VerifyResume(job, tables, {.device = device.get(), .comm = comm.get(), .log = log.get()},
                      {.folder = folder + "/verify", .points = points, .iterations = 36});
}

TEST(Resume, TwentyFivePoints) {
  const ScratchFolder scratch;
  const auto report = Verify(MakeJob(kJob, scratch.path()), TestTables(), scratch.path(), 25);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
  EXPECT_EQ(report->iterations, 36);
  const std::set<int64_t> points(report->points.begin(), report->points.end());
  ASSERT_EQ(points.size(), 25u);
  int64_t compared = 0;
  for (const int64_t point : points) compared += 36 - point;
  EXPECT_EQ(report->compared, compared);
}

TEST(Resume, Momentum) {
  const ScratchFolder scratch;
  const JobSpec job = MakeJob(kJob, scratch.path(), {"optimizer.name=momentum"});
  const auto report = Verify(job, TestTables(), scratch.path(), 3);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
}

// CKPT-03, the whole of it: averages of weights and of running statistics.
TEST(Resume, MovingAverages) {
  const ScratchFolder scratch;
  const auto report =
      Verify(MakeJob(kJob, scratch.path(), {"train.ema=0.9"}), TestTables(), scratch.path(), 4);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->difference, "");
}

// An operator's best kernel, and a count of its calls that no checkpoint knows of.
KernelFn honest = nullptr;
int64_t calls = 0;

void ForgetfulDropout(KernelContext& context, std::span<const TensorView> outputs,
                      std::span<const TensorView> inputs, const AnyStruct& attrs) {
  honest(context, outputs, inputs, attrs);
  outputs[0].Data<float>()[0] += 1e-3f * static_cast<float>(++calls);
}

// Training never reads running statistics: its loss cannot tell.
void ForgetfulStatistics(KernelContext& context, std::span<const TensorView> outputs,
                         std::span<const TensorView> inputs, const AnyStruct& attrs) {
  honest(context, outputs, inputs, attrs);
  outputs[3].Data<float>()[0] += 1e-3f * static_cast<float>(++calls);
}

EngineTables TablesWith(const std::string& op, KernelFn kernel) {
  EngineTables tables = MakeTables();
  std::vector<KernelRow> rows = tables.kernels.rows();
  const auto best =
      std::find_if(rows.begin(), rows.end(), [&](const KernelRow& row) { return row.op == op; });
  CHECK(best != rows.end()) << op;
  honest = best->fn;
  calls = 0;
  best->fn = kernel;
  tables.kernels = KernelTable(rows);
  return tables;
}

TEST(Resume, ADifferenceIsNoticed) {
  const ScratchFolder scratch;
  const EngineTables tables = TablesWith("dropout", ForgetfulDropout);
  const auto report = Verify(MakeJob(kJob, scratch.path()), tables, scratch.path(), 2);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(Contains(report->difference, "loss"));
  EXPECT_TRUE(Contains(report->difference, "differ"));
}

TEST(Resume, ADifferenceThatNoLossShowsIsNoticed) {
  const ScratchFolder scratch;
  const EngineTables tables = TablesWith("batch_norm", ForgetfulStatistics);
  // Without evaluation nothing depends on the statistics.
  JobSpec job = MakeJob(kJob, scratch.path());
  job.dataset.eval.reset();
  const auto report = Verify(job, tables, scratch.path(), 2);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(Contains(report->difference, "weights and optimizer state differ"));
}

// All that a checkpoint holds, bit for bit.
void ExpectSameState(Session& a, Session& b) {
  for (const StateGroup group : kSavedGroups) {
    const auto of_a = ReadState(a.executor(), group), of_b = ReadState(b.executor(), group);
    ASSERT_TRUE(of_a.ok() && of_b.ok());
    ASSERT_EQ(of_a->size(), of_b->size());
    EXPECT_TRUE(!of_a->empty() || group == StateGroup::kEma);
    for (size_t i = 0; i < of_a->size(); ++i) {
      const HostState &x = (*of_a)[i], &y = (*of_b)[i];
      ASSERT_EQ(x.name, y.name);
      ASSERT_EQ(x.view.type, y.view.type) << x.name;
      EXPECT_EQ(std::memcmp(x.view.data, y.view.data, static_cast<size_t>(x.view.type.bytes())), 0)
          << x.name;
    }
  }
}

// The polite way: a stop asked for in mid-run, then the same command again, three times over.
TEST(Resume, AskedToStop) {
  const ScratchFolder scratch;
  const JobSpec whole_job = MakeJob(kJob, scratch.File("whole"), {"train.epochs=4"});
  const std::unique_ptr<TrainRun> whole = TrainToEnd(whole_job);

  const JobSpec job = MakeJob(kJob, scratch.File("stopped"), {"train.epochs=4"});
  for (const int64_t stop_at : {2, 3, 8}) {
    std::atomic<bool> stop = false;
    auto run = TrainRun::Open(job, TestTables(), &stop);
    ASSERT_TRUE(run.ok()) << run.status();
    while ((*run)->trainer().iteration() < stop_at) ASSERT_TRUE((*run)->trainer().Step().ok());
    stop = true;
    const auto end = (*run)->trainer().Train();
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, TrainEnd::kStopped);
    EXPECT_EQ((*run)->trainer().iteration(), stop_at);
  }
  const std::unique_ptr<TrainRun> run = TrainToEnd(job);
  EXPECT_EQ(run->trainer().iteration(), 12);
  ExpectSameState(whole->session(), run->session());
  for (const char* key : {"iteration", "epoch", "loss", "lr"}) {
    EXPECT_EQ(Numbers(whole_job.output_dir, "train", key), Numbers(job.output_dir, "train", key))
        << key;
  }
  EXPECT_EQ(Numbers(whole_job.output_dir, "eval", "metrics.loss"),
            Numbers(job.output_dir, "eval", "metrics.loss"));
  EXPECT_EQ(whole->trainer().best_metric(), run->trainer().best_metric());
}

// A crash loses what came after the last save; its log lines are told once all the same.
TEST(Resume, AfterACrash) {
  const ScratchFolder scratch;
  const std::vector<std::string> overrides = {"train.epochs=3", "checkpoint.every_iterations=2"};
  const JobSpec whole_job = MakeJob(kJob, scratch.File("whole"), overrides);
  const std::unique_ptr<TrainRun> whole = TrainToEnd(whole_job);
  const JobSpec job = MakeJob(kJob, scratch.File("crashed"), overrides);
  {
    auto run = TrainRun::Open(job);
    ASSERT_TRUE(run.ok()) << run.status();
    for (int i = 0; i < 7; ++i) ASSERT_TRUE((*run)->trainer().Step().ok());
  }
  const std::unique_ptr<TrainRun> run = TrainToEnd(job);
  EXPECT_TRUE(Contains(LogText(job.output_dir), "(iteration 6)"));
  ExpectSameState(whole->session(), run->session());
  for (const char* key : {"iteration", "loss"}) {
    EXPECT_EQ(Numbers(whole_job.output_dir, "train", key), Numbers(job.output_dir, "train", key));
  }
}

TEST(Loading, WorkersPrefetchAndCacheChangeNothing) {
  const ScratchFolder scratch;
  const auto train = [&](const std::string& name, const std::vector<std::string>& loader) {
    std::vector<std::string> overrides = {"train.epochs=3"};
    for (const std::string& o : loader) overrides.push_back("dataset.train.loader." + o);
    return TrainToEnd(MakeJob(kJob, scratch.File(name), overrides));
  };
  const std::unique_ptr<TrainRun> first = train("0", {"num_workers=0", "prefetch=1"});
  const std::vector<double> losses = Numbers(scratch.File("0"), "train", "loss");
  ASSERT_EQ(losses.size(), 9u);
  const std::vector<std::pair<std::string, std::vector<std::string>>> others = {
      {"1", {"num_workers=1"}},
      {"3", {"num_workers=3"}},
      {"3_1", {"num_workers=3", "prefetch=1"}},
      {"1_9", {"num_workers=1", "prefetch=9"}},
      {"3_ram", {"num_workers=3", "cache=ram"}}};
  for (const auto& [name, loader] : others) {
    SCOPED_TRACE(name);
    const std::unique_ptr<TrainRun> run = train(name, loader);
    EXPECT_EQ(Numbers(scratch.File(name), "train", "loss"), losses);
    ExpectSameState(first->session(), run->session());
  }
}

}  // namespace
}  // namespace capstan
