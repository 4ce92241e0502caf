// kill -9 at any instant of a run that saves at each iteration (CKPT-01).
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "tests/faults/trainer_process.h"

namespace capstan {
namespace {

constexpr int kKills = 50;
constexpr int64_t kIterations = 120;

std::vector<std::string> Command(const std::string& job, const std::string& output_dir) {
  return {"train", "-c", job, "--threads", "1", "-o", "output_dir=" + output_dir};
}

// The last iteration whose line is there; a killed run may leave a broken last line.
int64_t LastLine(const RunFiles& run) {
  const auto lines = run.Events("train");
  return lines.empty() ? 0 : lines.back().iteration;
}

TEST(Kill, AtAnyInstant) {
  const TestFolder folder;
  const std::string job = folder.WriteJob(
      {.iterations = kIterations, .iterations_per_epoch = 20, .save_every = "1", .keep = 1000});
  // Keeps every checkpoint: what a killed run has of any iteration must be the same bytes.
  const RunFiles whole(folder.File("whole"));
  TrainerProcess undisturbed(Command(job, whole.path()));
  undisturbed.WaitFor("  it ");
  const double start_s = undisturbed.seconds();
  const Outcome end = undisturbed.Wait();
  ASSERT_EQ(end.status, 0) << end.err;
  const double iteration_s = (end.seconds - start_s) / kIterations;

  const RunFiles run(folder.File("run"));
  std::vector<std::string> command = Command(job, run.path());
  command.push_back("checkpoint.keep=2");
  std::mt19937 random(20);
  int while_saving = 0;
  int64_t reached = 0;
  for (int i = 0; i < kKills;) {
    if (reached == kIterations) {
      // Done before its kill: once more from the start.
      std::filesystem::remove_all(run.path());
      reached = 0;
    }
    {
      TrainerProcess trainer(command);
      // Every third while it starts, the others in the iterations that follow.
      if (i % 3 != 0) trainer.WaitFor("  it ");
      std::this_thread::sleep_for(std::chrono::duration<double>(
          static_cast<double>(random() % 2000) / 1000 * (i % 3 == 0 ? start_s / 2 : iteration_s)));
      kill(trainer.id(), SIGKILL);
      const Outcome end = trainer.Wait();
      if (end.status != 128 + SIGKILL) {
        ASSERT_EQ(end.status, 0) << end.err;
        reached = kIterations;
        continue;
      }
    }
    ++i;
    const auto newest = OpenNewestCheckpoint(run.path());
    ASSERT_TRUE(newest.ok()) << newest.status();
    ASSERT_TRUE(newest->passed_over.empty()) << newest->passed_over.front();
    const int64_t trained = LastLine(run);
    const int64_t saved = newest->reader.has_value() ? newest->reader->iteration() : 0;
    EXPECT_GE(saved, trained - 1) << "more than one save is lost";
    EXPECT_GE(saved, reached) << "went back";
    reached = saved;
    if (saved == 0) continue;
    EXPECT_EQ(newest->reader->state().iteration, saved);
    EXPECT_TRUE(run.Tensors(saved) == whole.Tensors(saved)) << "half of one, half of another";
    while_saving += !run.Leftovers().empty();
  }
  EXPECT_GT(while_saving, 3) << "the kills missed the saves";

  const Outcome last = RunTrainer(command);
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(last.out.find("resumed from ") != std::string::npos, reached > 0) << last.out;
  ExpectSameRun(run, whole);
  EXPECT_EQ(run.Leftovers(), std::vector<std::string>());
  EXPECT_EQ(run.Events("end").size(), 1) << "one run ended by itself";
}

}  // namespace
}  // namespace capstan
