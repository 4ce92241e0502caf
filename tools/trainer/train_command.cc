#include <csignal>
#include <filesystem>
#include <fstream>

#include "engine/base/status.h"
#include "engine/config/job_checks.h"
#include "engine/config/load_job.h"
#include "engine/config/render.h"
#include "engine/train/trainer.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"

namespace capstan {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

extern "C" void AskToStop(int signal) {
  stop_asked.store(true, std::memory_order_relaxed);
  // A second signal ends the process at once; checkpoints survive that.
  std::signal(signal, SIG_DFL);
}

absl::Status WriteJob(const JobSpec& job) {
  std::error_code error;
  std::filesystem::create_directories(job.output_dir, error);
  if (error) {
    return FailedPrecondition("output_dir {}: {}", job.output_dir, error.message());
  }
  const std::string path = job.output_dir + "/job.yaml";
  std::ofstream file(path);
  file << Render(job);
  file.flush();
  return file.good() ? absl::OkStatus() : FailedPrecondition("cannot write {}", path);
}

const char* ReasonOf(const absl::StatusOr<TrainEnd>& end) {
  if (!end.ok()) return absl::IsOutOfRange(end.status()) ? "diverged" : "failed";
  return *end == TrainEnd::kFinished ? "finished" : "stopped";
}

}  // namespace

absl::StatusOr<int> TrainCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, LoadJob(line.config, tables.choices, line.overrides));
  RETURN_IF_ERROR(CheckCanTrain(job));
  RETURN_IF_ERROR(CheckSupported(job));
  RETURN_IF_ERROR(WriteJob(job));
  std::signal(SIGINT, AskToStop);
  std::signal(SIGTERM, AskToStop);
  ASSIGN_OR_RETURN(const std::unique_ptr<RunLog> log,
                   RunLog::Create({.output_dir = job.output_dir}));
  const std::unique_ptr<Device> device = MakeCpuDevice(line.threads);
  const std::unique_ptr<Comm> comm = MakeSingleComm();
  const TrainerOptions options{.device = device.get(),
                               .comm = comm.get(),
                               .log = log.get(),
                               .stop = &stop_asked,
                               .session = {.dump = line.dump}};
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(job, tables, options);
  absl::StatusOr<TrainEnd> end = trainer.ok() ? (*trainer)->Train() : trainer.status();
  log->End(ReasonOf(end), end.ok() ? "" : MessageOf(end.status()));
  RETURN_IF_ERROR(end.status());
  return *end == TrainEnd::kFinished ? kExitDone : kExitStopped;
}

}  // namespace capstan
