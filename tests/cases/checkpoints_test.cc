// What users meet when a run goes on from its checkpoints, through the real binary.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const char kNewest[] = "output/checkpoints/iteration_000000004";

// 4 iterations on generated pictures, each of them saved.
void WriteJob(const JobFolder& job) {
  job.Write("job.yaml", fmt::format(R"(version: 1
model: {{name: resnet18, classes: 3, stem: small, width: 4}}
dataset:
  train: {{type: synthetic, classes: 3, shape: [3, 8, 8], samples: 8, batch_size: 2}}
loss: {{name: cross_entropy}}
optimizer: {{name: momentum, lr: 0.01}}
train: {{epochs: 1}}
checkpoint: {{every_iterations: 1}}
log: {{every_iterations: 1}}
output_dir: '{}'
device: cpu
)",
                                    job.Path("output")));
}

TEST(Checkpoints, ADamagedFileIsNamedAndPassedOver) {  // CKPT-02
  const JobFolder job("damaged");
  WriteJob(job);
  ASSERT_EQ(job.Run("train", "--threads 1").status, 0);
  const std::string member = job.Path(std::string(kNewest) + "/weights.safetensors");
  fs::resize_file(member, fs::file_size(member) / 2);
  const Outcome named = job.Run("train", "--threads 1 -o checkpoint.resume=" + job.Path(kNewest));
  EXPECT_NE(named.status, 0);
  EXPECT_THAT(named.output, HasSubstr(member));
  const Outcome automatic = job.Run("train", "--threads 1");
  EXPECT_EQ(automatic.status, 0) << automatic.output;
  EXPECT_THAT(automatic.output, HasSubstr(member));
  EXPECT_THAT(automatic.output, HasSubstr("(iteration 3)"));
  EXPECT_THAT(automatic.output, HasSubstr("it 4/4"));
}

TEST(Checkpoints, AFinishedRunTakesNoStep) {  // CKPT-06
  const JobFolder job("finished");
  WriteJob(job);
  ASSERT_EQ(job.Run("train", "--threads 1").status, 0);
  const Outcome again = job.Run("train", "--threads 1");
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("nothing to do: all 4 iterations are done"));
  EXPECT_THAT(again.output, Not(HasSubstr("  it ")));
}

TEST(Checkpoints, AnEmptyFolderIsNoStart) {  // CKPT-06
  const JobFolder job("empty");
  WriteJob(job);
  fs::create_directories(job.Path("nothing"));
  for (const char* folder : {"nothing", "absent"}) {
    const Outcome out = job.Run("train", "--threads 1 -o checkpoint.resume=" + job.Path(folder));
    EXPECT_EQ(out.status, folder == std::string("absent") ? 2 : 3) << out.output;
    EXPECT_THAT(out.output, HasSubstr(job.Path(folder)));
    EXPECT_THAT(out.output, Not(HasSubstr("  it ")));
  }
  // Nothing was saved before the run was killed.
  job.Write("output/metrics.jsonl", "{\"event\":\"train\",\"iteration\":1}\n{\"event\":\"tr");
  const Outcome automatic = job.Run("train", "--threads 1");
  EXPECT_EQ(automatic.status, 0) << automatic.output;
  EXPECT_THAT(automatic.output, HasSubstr("starting at iteration 0: no checkpoint in "));
  EXPECT_THAT(automatic.output, HasSubstr("it 4/4"));
}

}  // namespace
}  // namespace capstan
