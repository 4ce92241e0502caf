// What is planned against what the system gives: the growth of a process's peak resident memory.
// The nets are large enough for code, stacks and the like not to matter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "engine/checkpoint/checkpoint_testing.h"

namespace capstan {
namespace {

constexpr double kTolerance = 0.05;

struct Memory {
  double planned = 0, grown = 0;
};

// Runs memory_probe in a process of its own.
Memory Probe(const std::string& what, const std::string& yaml) {
  const ScratchFolder scratch;
  Spill(scratch.File("job.yaml"), yaml + "output_dir: " + scratch.File("output") + "\n");
  const std::string command = "tests/train/memory_probe " + what + " " + scratch.File("job.yaml");
  Memory memory;
  std::FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  EXPECT_EQ(std::fscanf(pipe, "%lf %lf", &memory.planned, &memory.grown), 2);
  EXPECT_EQ(pclose(pipe), 0);
  return memory;
}

void ExpectAsPlanned(const Memory& memory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory is not planned";
#endif
  EXPECT_GT(memory.planned, 200e6);
  EXPECT_NEAR(memory.grown / memory.planned, 1, kTolerance)
      << "planned " << memory.planned << ", grown " << memory.grown;
}

// Every batch that is planned is used: there are at least as many as the loaders keep.
TEST(Memory, Training) {
  ExpectAsPlanned(Probe("train", R"(
version: 1
model: {name: resnet18, classes: 10, stem: small, width: 16}
dataset:
  train: {type: synthetic, pattern: noise, samples: 768, batch_size: 256,
          loader: {num_workers: 1, prefetch: 1}}
  eval: {type: synthetic, pattern: noise, samples: 768, batch_size: 256,
         loader: {num_workers: 1, prefetch: 1}}
loss: {name: cross_entropy}
optimizer: {name: momentum, lr: 0.01}
train: {epochs: 1}
)"));
}

TEST(Memory, Evaluation) {
  ExpectAsPlanned(Probe("eval", R"(
version: 1
model: {name: resnet18, classes: 10, stem: small, width: 16}
dataset:
  eval: {type: synthetic, pattern: noise, samples: 3072, batch_size: 1024,
         loader: {num_workers: 1, prefetch: 1}}
loss: {name: cross_entropy}
)"));
}

}  // namespace
}  // namespace capstan
