// For tests of the training loop: small models whose results are known in closed form, jobs from
// text, and runs of them in this process. One thread.
//
//   const ScratchFolder scratch;
//   const JobSpec job = MakeJob(kText, scratch.path(), {"train.epochs=2"});
//   auto run = TrainRun::Open(job);
//   ASSERT_TRUE(run.ok()) << run.status();
//   ASSERT_TRUE((*run)->trainer().Train().ok());
//   const std::vector<double> losses = Numbers(job.output_dir, "train", "loss");
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint_testing.h"
#include "engine/config/job_spec.h"
#include "engine/train/trainer.h"

namespace capstan {

// The tool's tables and three more models, each with the option `classes`:
//
//   channels     scores = mean of each channel + "w", a weight that starts at 1; as many classes as
//                channels. Pictures then dictate scores, losses and gradients.
//   plain        convolution, relu, pooling, dropout, linear: no sample meets another one.
//   pooled_norm  the same with batch norm after the pooling: one value a sample and channel.
const EngineTables& TestTables();

// A job from YAML with `output_dir: folder`. CHECKs that it is sound.
JobSpec MakeJob(std::string_view yaml, const std::string& folder,
                const std::vector<std::string>& overrides = {});

// A trainer with the things it needs around it.
class TrainRun {
 public:
  static absl::StatusOr<std::unique_ptr<TrainRun>> Open(const JobSpec& job,
                                                        const EngineTables& tables = TestTables(),
                                                        const std::atomic<bool>* stop = nullptr);

  Trainer& trainer() { return *trainer_; }
  Session& session() { return trainer_->session(); }

  // Device, comm and log, for what makes trainers of its own.
  const TrainerOptions& options() const { return options_; }

 private:
  TrainRun() = default;

  std::unique_ptr<Device> device_;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<CheckpointStore> store_;
  std::unique_ptr<RunLog> log_;
  TrainerOptions options_;
  std::unique_ptr<Trainer> trainer_;
};

// Opens and trains to the end; CHECKs that both succeed.
std::unique_ptr<TrainRun> TrainToEnd(const JobSpec& job);

// Of the `event` lines of <output_dir>/metrics.jsonl the number at `key`; "metrics.top1" looks
// inside.
std::vector<double> Numbers(const std::string& output_dir, std::string_view event,
                            std::string_view key);

// Everything the run told: <output_dir>/train.log.
std::string LogText(const std::string& output_dir);

// Elements of a state in logical order, f32.
std::vector<float> ValuesOf(Session& session, const std::string& name);

// Writes a PNG of one pixel.
void WritePixel(const std::string& path, uint8_t red, uint8_t green, uint8_t blue);

// True where `text` has `part`; a failure shows both.
testing::AssertionResult Contains(const std::string& text, const std::string& part);

}  // namespace capstan
