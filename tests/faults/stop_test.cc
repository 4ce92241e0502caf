// Polite stops: SIGTERM, SIGINT and SIGHUP while training, evaluating and waiting for data. The run
// that goes on afterwards must not be told from one that was never stopped (CKPT-05, LR-01).
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/faults/trainer_process.h"

namespace capstan {
namespace {

void ExpectStopped(const Outcome& run, const std::string& signal, const RunFiles& files) {
  EXPECT_EQ(run.status, 75) << run.err << run.out;
  EXPECT_NE(run.err.find("trainer: stopping"), std::string::npos) << run.err;
  const std::string iteration = std::to_string(files.Iteration());
  EXPECT_NE(run.out.find("stopped by " + signal + " after iteration " + iteration + " of "),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("the same command goes on from there"), std::string::npos) << run.out;
  EXPECT_EQ(files.Events("end").back().what, "status \"stopped\" ");
  EXPECT_TRUE(files.Leftovers().empty());
}

RunFiles RunWhole(const std::string& job, const TestFolder& folder) {
  const Outcome run = RunTrainer(
      {"train", "-c", job, "--threads", "1", "-o", "output_dir=" + folder.File("whole")});
  EXPECT_EQ(run.status, 0) << run.err;
  return RunFiles(folder.File("whole"));
}

TEST(PoliteStop, WhileTraining) {
  const TestFolder folder;
  const std::string job =
      folder.WriteJob({.iterations = 1200, .iterations_per_epoch = 500, .save_every = "1000"});
  const RunFiles whole = RunWhole(job, folder);
  const RunFiles run(folder.File("run"));
  int64_t reached = 0;
  for (const auto& [signal, name] :
       {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGINT, "SIGINT"), std::pair(SIGHUP, "SIGHUP")}) {
    TrainerProcess trainer({"train", "-c", job, "--threads", "1"});
    trainer.WaitFor("it " + std::to_string(reached + 100) + "/");
    trainer.Signal(signal);
    ExpectStopped(trainer.Wait(10), name, run);
    EXPECT_GE(run.Iteration(), reached + 100);
    EXPECT_EQ(run.Events("train").back().iteration, run.Iteration());
    reached = run.Iteration();
  }
  EXPECT_LT(reached, 1200) << "nothing was left to resume";
  EXPECT_EQ(RunTrainer({"train", "-c", job, "--threads", "1"}).status, 0);
  ExpectSameRun(run, whole);
}

// The evaluation is broken off, and done by the next run.
TEST(PoliteStop, WhileEvaluating) {
  const TestFolder folder;
  const std::string job = folder.WriteJob({.iterations = 24, .eval_samples = 20000});
  const RunFiles whole = RunWhole(job, folder);
  const RunFiles run(folder.File("run"));
  for (const int64_t iteration : {8, 24}) {
    TrainerProcess trainer({"train", "-c", job, "--threads", "1"});
    trainer.WaitFor("it " + std::to_string(iteration) + "/");
    trainer.Signal(SIGTERM);
    ExpectStopped(trainer.Wait(10), "SIGTERM", run);
    EXPECT_EQ(run.Iteration(), iteration);
    EXPECT_NE(run.State().find("\"evaluation_due\":true"), std::string::npos);
    EXPECT_EQ(run.Events("eval").size(), iteration / 8 - 1);
  }
  EXPECT_EQ(RunTrainer({"train", "-c", job, "--threads", "1"}).status, 0);
  ExpectSameRun(run, whole);
  EXPECT_EQ(run.State(), whole.State());
}

// A batch takes long to come; the stop does not wait for it.
TEST(PoliteStop, WhileWaitingForData) {
  const TestFolder folder;
  const std::string job = folder.WriteJob({.iterations = 5, .eval_samples = 1, .image = 2000});
  const RunFiles whole = RunWhole(job, folder);
  const RunFiles run(folder.File("run"));
  TrainerProcess trainer({"train", "-c", job, "--threads", "1"});
  trainer.WaitFor("it 2/");
  trainer.Signal(SIGTERM);
  ExpectStopped(trainer.Wait(10), "SIGTERM", run);
  EXPECT_EQ(run.Iteration(), 2);
  EXPECT_EQ(RunTrainer({"train", "-c", job, "--threads", "1"}).status, 0);
  ExpectSameRun(run, whole);
}

TEST(PoliteStop, BeforeTheFirstIteration) {
  const TestFolder folder;
  const std::string job = folder.WriteJob({.iterations = 4, .image = 2000});
  const RunFiles run(folder.File("run"));
  TrainerProcess trainer({"train", "-c", job, "--threads", "1"});
  trainer.WaitFor("starting at iteration 0");
  trainer.Signal(SIGINT);
  ExpectStopped(trainer.Wait(10), "SIGINT", run);
  EXPECT_EQ(run.Iteration(), 0);
}

// An impatient second Ctrl-C ends the process; the next run goes on.
TEST(PoliteStop, ASecondSignalEndsAtOnce) {
  const TestFolder folder;
  const std::string job = folder.WriteJob({.iterations = 4, .image = 3000});
  TrainerProcess trainer({"train", "-c", job, "--threads", "1"});
  trainer.WaitFor("starting at iteration 0");
  trainer.Signal(SIGINT);
  kill(trainer.id(), SIGINT);
  const int status = trainer.Wait(10).status;
  EXPECT_TRUE(status == 128 + SIGINT || status == 75) << status;
}

}  // namespace
}  // namespace capstan
