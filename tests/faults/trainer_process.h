// Runs the real `trainer` and looks at what a user sees: status, standard output, standard error,
// the files of the run.
//
// Invariant: no process outlives its TrainerProcess. One thread at a time.
//
//   const TestFolder folder;
//   const std::string job = folder.WriteJob({.iterations = 20});
//   const Outcome run = RunTrainer({"train", "-c", job});
//   ExpectFailure(run, 2, {"job.yaml:3:1"});
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace capstan {

struct ProcessOptions {
  uint64_t address_space = 0;  // RLIMIT_AS in bytes; 0: none
  uint64_t file_bytes = 0;     // RLIMIT_FSIZE; 0: none
  std::string output;          // standard output goes to this file; "closed": there is none
};

struct Outcome {
  int status = 0;  // of exit; 128 + signal, as a shell tells it
  std::string out, err;
  double seconds = 0;
};

class TrainerProcess {
 public:
  explicit TrainerProcess(const std::vector<std::string>& arguments,
                          const ProcessOptions& options = {});
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;
  ~TrainerProcess();

  pid_t id() const { return id_; }
  double seconds() const;  // since its start
  bool running();
  void Signal(int signal);
  // What it has printed so far.
  std::string output() const;
  // Waits until it has printed `text`; fails the test after 20 seconds, or where it ends before.
  void WaitFor(const std::string& text);
  // Waits for the end; a process that takes longer than `limit_s` is killed and fails the test.
  Outcome Wait(double limit_s = 30);

 private:
  pid_t id_ = -1;
  bool ended_ = false;
  int wait_status_ = 0;
  std::string output_, error_;  // files
  bool own_output_ = false;
  std::chrono::steady_clock::time_point start_, end_;
};

// To its end.
Outcome RunTrainer(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

// One message on standard error that holds all of `parts`, the status, no dump, within 10 seconds.
void ExpectFailure(const Outcome& outcome, int status, const std::vector<std::string>& parts);

// A small residual network on generated pictures, about 2 ms an iteration.
struct JobOptions {
  int64_t iterations = 16;
  int64_t iterations_per_epoch = 8;
  int64_t eval_samples = 16;
  int64_t image = 8;                // height and width of the generated pictures, scaled to 8
  std::string save_every = "null";  // checkpoint.every_iterations
  int64_t keep = 3;
  std::string more;  // further top-level keys
};

// An empty folder that goes with the test.
class TestFolder {
 public:
  TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder();

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, with the folders above it, and gives its path.
  std::string Write(const std::string& name, const std::string& content) const;
  // job.yaml, whose output_dir is run/ in this folder; gives its path.
  std::string WriteJob(const JobOptions& options) const;
  // The same over JPEG files that a list names: pictures/list.txt, eight pictures of four classes.
  std::string WritePictureJob() const;

 private:
  std::string path_;
};

std::string ReadAll(const std::string& path);

// A line of metrics.jsonl.
struct Event {
  int64_t iteration = 0;
  // What two equal runs have in common: epoch, loss and rate; the metrics; the status of the end.
  std::string what;
  friend bool operator==(const Event&, const Event&) = default;
};

// What a run left in its output_dir.
class RunFiles {
 public:
  explicit RunFiles(std::string output_dir) : output_dir_(std::move(output_dir)) {}

  // Lines of metrics.jsonl of one event: "train", "eval", "checkpoint", "end". Those that are whole
  // if the run still writes.
  std::vector<Event> Events(const std::string& event) const;
  // Of the newest checkpoint.
  int64_t Iteration() const;
  // Its state.json, but for the job, in which runs differ.
  std::string State() const;
  // Names in checkpoints/ and in output_dir that no complete run leaves.
  std::vector<std::string> Leftovers() const;
  // The bytes of weights and optimizer state of an iteration.
  std::string Tensors(int64_t iteration) const;
  const std::string& path() const { return output_dir_; }

 private:
  std::string output_dir_;
};

// The same weights, optimizer state, losses, rates and evaluations; in both, every iteration once.
void ExpectSameRun(const RunFiles& joined, const RunFiles& whole);

}  // namespace capstan
