#include <fmt/format.h>

#include "engine/base/status.h"
#include "engine/config/job_checks.h"
#include "engine/train/evaluate.h"
#include "engine/train/image_data.h"
#include "engine/train/loss_options.h"
#include "engine/train/metrics.h"
#include "engine/train/trainer.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"
#include "tools/trainer/saved_model.h"

namespace capstan {

absl::StatusOr<int> EvaluateCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(JobSpec job, ReadJob(line, tables));
  RETURN_IF_ERROR(CheckCanEvaluate(job));
  // The training data need not be there.
  job.dataset.train.reset();
  if (!job.loss.has_value()) job.loss = LossSpec{DefaultLoss()};
  ASSIGN_OR_RETURN(const TrainingSetup setup, SetUpTraining(job, tables));
  ASSIGN_OR_RETURN(const SavedModel model,
                   OpenSavedModel(job, line.checkpoint, setup.request, tables, {.dump = line.dump},
                                  line.threads));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Loader> loader,
      OpenLoader(*job.dataset.eval, setup.eval_images, {.mode = SamplerMode::kEvaluate}));
  ASSIGN_OR_RETURN(const EvaluationResult result,
                   EvaluateAll(*model.session, *loader,
                               job.loss->choice.options.As<CrossEntropyOptions>().ignore_index));
  std::string text = fmt::format("{}, {} samples", model.source, result.samples);
  for (const auto& [name, value] : result.metrics) text += fmt::format("  {} {:.5f}", name, value);
  Print(text + "\n");
  if (const std::string note = NoteOnMetrics(setup.classes); !note.empty()) {
    fmt::print(stderr, "trainer: warning: {}\n", note);
  }
  for (const BadSample& bad : result.bad) {
    fmt::print(stderr, "left out {}: {}\n", bad.origin, bad.reason);
  }
  return kExitDone;
}

}  // namespace capstan
