#include "engine/config/job_checks.h"

#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/config/load_job.h"
#include "engine/config/sample_choices.h"

namespace capstan {
namespace {

absl::StatusOr<JobSpec> Parse(const std::string& line) {
  return ParseJob("model: crnn\n" + line + "\n", "job.yaml", SampleChoices());
}

std::string ErrorsOf(const std::string& line) {
  const absl::StatusOr<JobSpec> job = Parse(line);
  return job.ok() ? "no error" : MessageOf(job.status());
}

// The degrees "dp pp sharding mp" for `world` processes, or the message.
std::string Resolve(const std::string& configs, int64_t world) {
  const absl::StatusOr<JobSpec> job = Parse("hybrid_configs: " + configs);
  if (!job.ok()) return MessageOf(job.status());
  const absl::StatusOr<Degrees> d = ResolveDegrees(*job, world);
  if (!d.ok()) return MessageOf(d.status());
  EXPECT_EQ(d->product(), world);
  return std::to_string(d->dp) + " " + std::to_string(d->pp) + " " + std::to_string(d->sharding) +
         " " + std::to_string(d->mp);
}

// CFG-09.
TEST(JobChecks, DegreesMustMakeTheWorld) {
  EXPECT_EQ(Resolve("{dp_degree: 4, mp_degree: 2, pp_degree: 2}", 16), "4 2 1 2");
  EXPECT_EQ(Resolve("{}", 1), "1 1 1 1");
  EXPECT_EQ(Resolve("{dp_degree: -1, mp_degree: 2}", 8), "4 1 1 2");
  EXPECT_EQ(Resolve("{dp_degree: 2, sharding_degree: -1, pp_degree: 2}", 12), "2 2 3 1");
  EXPECT_EQ(Resolve("{dp_degree: 2, mp_degree: 1, pp_degree: 1, sharding_degree: 1}", 4),
            "job.yaml:2:1: hybrid_configs: dp 2 x mp 1 x pp 1 x sharding 1 = 2 but 4 processes; "
            "change a degree or the number of processes");
  EXPECT_EQ(Resolve("{dp_degree: 2}", 1),
            "job.yaml:2:1: hybrid_configs: dp 2 x mp 1 x pp 1 x sharding 1 = 2 but 1 process; "
            "change a degree or the number of processes");
  EXPECT_EQ(Resolve("{dp_degree: -1, mp_degree: 3}", 4),
            "job.yaml:2:1: hybrid_configs: dp -1 x mp 3 x pp 1 x sharding 1 cannot be made equal "
            "to 4 processes: 3 does not divide 4; change a degree or the number of processes");
  EXPECT_EQ(Resolve("{dp_degree: 1048576, mp_degree: 1048576, pp_degree: 1048576, "
                    "sharding_degree: 1048576}",
                    4),
            "job.yaml:2:1: hybrid_configs: dp 1048576 x mp 1048576 x pp 1048576 x sharding 1048576 "
            "is far more than 4 processes; change a degree or the number of processes");
  EXPECT_EQ(Resolve("{dp_degree: 0}", 4),
            "job.yaml:2:29: hybrid_configs.dp_degree: 0 is out of range; it must be at least 1, or "
            "-1 for what is left");
  EXPECT_EQ(Resolve("{dp_degree: -2}", 4),
            "job.yaml:2:29: hybrid_configs.dp_degree: -2 is out of range; it must be from -1 to "
            "1048576");
  EXPECT_EQ(Resolve("{dp_degree: -1, pp_degree: -1}", 4),
            "job.yaml:2:44: hybrid_configs.pp_degree: a second degree is -1; only one can be "
            "derived from the number of processes");
}

TEST(JobChecks, AutoLeavesTheDegreesToThePlanner) {
  EXPECT_EQ(ErrorsOf("hybrid_configs: auto"), "no error");
  EXPECT_EQ(ErrorsOf("hybrid_configs: {mode: auto, mp_degree: 2}"),
            "job.yaml:2:41: hybrid_configs.mp_degree: given although the mode is auto; remove one "
            "of the two");
  EXPECT_EQ(ErrorsOf("hybrid_configs: {sequence_parallel: true}"),
            "job.yaml:2:37: hybrid_configs.sequence_parallel: needs mp_degree above 1, for it "
            "splits what tensor-parallel ranks repeat");
}

TEST(JobChecks, BatchesAndMicroBatches) {
  const std::string set = "dataset: {train: {type: image_list, root: r";
  EXPECT_EQ(ErrorsOf(set + ", batch_size: 10}}\nstrategy: {micro_batches: 4}"),
            "job.yaml:2:58: dataset.train.batch_size: 10 is not a multiple of "
            "strategy.micro_batches = 4; change one of them");
  EXPECT_EQ(ErrorsOf(set + "}}"),
            "job.yaml:2:11: dataset.train.batch_size: missing; give it, or tokens_per_batch for "
            "packed text");
  EXPECT_EQ(ErrorsOf(set + ", batch_size: 4, tokens_per_batch: 64}}"),
            "job.yaml:2:58: dataset.train.batch_size: given beside tokens_per_batch; keep one of "
            "the two");
  EXPECT_EQ(ErrorsOf(set + ", tokens_per_batch: 64}}\nstrategy: {micro_batches: 4}"), "no error");
}

TEST(JobChecks, OneWayOfClipping) {
  const auto clip = [](const std::string& value) {
    return ErrorsOf("optimizer: {name: adam, lr: 1, grad_clip: " + value + "}");
  };
  EXPECT_EQ(clip("{value: 5}"), "no error");
  EXPECT_EQ(clip("{}"),
            "job.yaml:2:32: optimizer.grad_clip: gives none of global_norm, norm and value; give "
            "exactly one, or null");
  EXPECT_EQ(clip("{value: 5, norm: 1}"),
            "job.yaml:2:32: optimizer.grad_clip: gives several of global_norm, norm and value; "
            "give exactly one, or null");
}

TEST(JobChecks, InterleavingNeedsItsDegree) {
  EXPECT_EQ(ErrorsOf("strategy: {schedule: interleaved, virtual_pp_degree: 2}"), "no error");
  EXPECT_EQ(ErrorsOf("strategy: {schedule: interleaved}"),
            "job.yaml:2:22: strategy.schedule: interleaved needs virtual_pp_degree above 1");
  EXPECT_EQ(ErrorsOf("strategy: {virtual_pp_degree: 2}"),
            "job.yaml:2:31: strategy.virtual_pp_degree: above 1 needs schedule: interleaved");
}

TEST(JobChecks, CommandsNeedTheirParts) {
  EXPECT_EQ(MessageOf(CheckCanTrain(*Parse("train: {seed: 1}"))),
            "job.yaml:1:1: dataset.train: missing; training needs it\n"
            "job.yaml:1:1: loss: missing; training needs it\n"
            "job.yaml:1:1: optimizer: missing; training needs it\n"
            "job.yaml:2:1: train.epochs: missing; training needs it, or max_iterations");
  EXPECT_EQ(MessageOf(CheckCanEvaluate(*Parse("name: x"))),
            "job.yaml:1:1: dataset.eval: missing; evaluation needs it");
  EXPECT_TRUE(CheckCanTrain(*Parse("dataset: {train: {type: image_list, root: r, batch_size: 1}}\n"
                                   "loss: cross_entropy\n"
                                   "optimizer: {name: adam, lr: 1}\n"
                                   "train: {max_iterations: 5}"))
                  .ok());
}

}  // namespace
}  // namespace capstan
