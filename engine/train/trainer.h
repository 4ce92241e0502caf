// Trainer: the training loop of one rank. It reads like a list of what happens in an iteration:
// gather the batches of an update, run them, update, report, evaluate, save.
//
// An iteration is one optimizer update. At the end of Step everything that determines what follows
// is in the checkpoint that Save would write, so a resumed run repeats an uninterrupted one bit for
// bit. One thread at a time; `stop` may be set from a signal handler.
//
//   ASSIGN_OR_RETURN(auto trainer, Trainer::Create(job, tables, options));
//   ASSIGN_OR_RETURN(TrainEnd end, trainer->Train());
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint_store.h"
#include "engine/config/job_spec.h"
#include "engine/runtime/comm.h"
#include "engine/train/evaluate.h"
#include "engine/train/image_data.h"
#include "engine/train/resume_report.h"
#include "engine/train/run_log.h"
#include "engine/train/schedule.h"
#include "engine/train/session.h"

namespace capstan {

struct TrainerOptions {
  Device* device = nullptr;  // outlives the trainer, as do all of these
  Comm* comm = nullptr;
  RunLog* log = nullptr;
  CheckpointStore* store = nullptr;  // of the job's output_dir
  // Set: finish the iteration (a wait for data or an evaluation is broken off), save, end.
  const std::atomic<bool>* stop = nullptr;
  SessionOptions session;
};

enum class TrainEnd { kFinished, kStopped };

// What a training job becomes before anything runs: also what `explain` shows.
struct TrainingSetup {
  std::shared_ptr<const ImageSource> train_images, eval_images;
  int64_t classes = 0;
  CompileRequest request;
};

class Trainer {
 public:
  // Opens the data, compiles, and resumes as `checkpoint.resume` says, or begins with
  // `model.pretrained`. `tables` outlives it.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const JobSpec& job,
                                                         const EngineTables& tables,
                                                         const TrainerOptions& options);

  // Runs to the end of training, or until asked to stop; saves at the end either way.
  // OutOfRange: the loss or the weights are no longer finite; such weights are never saved.
  absl::StatusOr<TrainEnd> Train();

  // One iteration, with the evaluation and saving that are due after it. False: nothing is left.
  // Cancelled: asked to stop before the iteration began, or in its evaluation.
  absl::StatusOr<bool> Step();
  absl::Status Save();

  int64_t iteration() const { return state_.iteration; }
  int64_t total_iterations() const { return total_iterations_; }
  double last_loss() const { return last_loss_; }
  std::optional<double> best_metric() const { return state_.best_metric; }
  Session& session() { return *session_; }

 private:
  // Seconds of the phases since the last report.
  struct Clock {
    double data = 0, compute = 0, evaluate = 0;
    int64_t samples = 0;
  };

  Trainer(const JobSpec& job, const EngineTables& tables, const TrainerOptions& options);

  absl::Status OpenData();
  // For a run that begins anew: that the schedule fits its length, before anything is compiled.
  absl::Status CheckSchedule() const;
  // Whether it resumed from one.
  absl::StatusOr<bool> OpenCheckpoints();
  absl::Status OpenPretrained();
  absl::Status Restore(const CheckpointReader& reader);
  absl::Status RestoreTensors(const CheckpointReader& reader, const ResumeReport& report);
  // Always false: nothing was resumed.
  absl::StatusOr<bool> StartAnew();
  // Logs what changed in the job since a checkpoint; an error where it may not change.
  absl::StatusOr<ResumeReport> CompareJobs(const TrainingState& saved) const;
  absl::Status OpenTrainLoader();
  absl::StatusOr<Schedule> MakeSchedule(int64_t per_epoch, int64_t total) const;
  int64_t UpdatesOf(int64_t batches) const;
  // Iterations from a place in the data to the end of its epoch.
  int64_t IterationsLeft(const SamplerState& at) const;
  // Sets how many iterations and epochs there are, seen from where the run stands.
  void PlanLength();
  // The batches of one update; fewer at an epoch's end, none when training is over.
  absl::StatusOr<std::vector<BatchPtr>> NextBatches();
  absl::Status RunUpdate(const std::vector<BatchPtr>& batches);
  absl::Status Evaluate();
  absl::Status NoteBad(const std::vector<BadSample>& bad);
  absl::Status Diverged(const std::string& what) const;
  void Report();
  bool stopping() const;
  bool EvaluationDue(bool epoch_ended) const;

  const JobSpec job_;
  const EngineTables& tables_;
  const TrainerOptions options_;
  TrainingSetup setup_;
  int64_t ignore_index_ = 0;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Loader> loader_;
  std::optional<Schedule> schedule_;
  int64_t iterations_per_epoch_ = 0;
  int64_t total_iterations_ = 0;
  int64_t total_epochs_ = 0;
  int64_t saved_iteration_ = -1;
  TrainingState state_;
  int64_t epoch_ = 0;  // of the last iteration
  double last_loss_ = 0;
  double last_rate_ = 0;
  Clock clock_;
  double mean_step_seconds_ = 0;
};

// Opens the data sets of a job and derives what to compile. Errors of the data are DataLoss.
absl::StatusOr<TrainingSetup> SetUpTraining(const JobSpec& job, const EngineTables& tables);

// Host memory of the batches that training such a job reads ahead and holds, an evaluation in
// between included, in bytes.
int64_t BatchBytes(const JobSpec& job, const TrainingSetup& setup);

// InvalidArgument naming every key that asks for what this build cannot do yet, or whose value its
// schedule or metric refuses. Needs no data.
absl::Status CheckSupported(const JobSpec& job);

}  // namespace capstan
