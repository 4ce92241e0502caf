#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "engine/base/status.h"
#include "engine/checkpoint/file_io.h"
#include "engine/config/job_checks.h"
#include "engine/config/render.h"
#include "engine/train/trainer.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"

namespace capstan {
namespace {

std::atomic<bool> stop_asked = false;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "set from a signal handler");

extern "C" void AskToStop(int signal) {
  constexpr char kNotice[] =
      "trainer: stopping: finishes the iteration and saves; a second signal ends at once\n";
  const int saved_errno = errno;
  stop_signal.store(signal, std::memory_order_relaxed);
  stop_asked.store(true, std::memory_order_relaxed);
  // Where nobody reads the notice, nothing is lost.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kNotice, sizeof(kNotice) - 1);
  // A second signal ends the process at once; checkpoints survive that.
  std::signal(signal, SIG_DFL);
  errno = saved_errno;
}

const char* NameOfSignal(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

void HandleSignals() {
  std::signal(SIGINT, AskToStop);
  std::signal(SIGTERM, AskToStop);
  // The terminal is gone; under nohup that is meant to be ignored.
  if (std::signal(SIGHUP, AskToStop) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  // Nobody reads standard output any more (`trainer train ... | head`): train.log goes on.
  std::signal(SIGPIPE, SIG_IGN);
}

const char* ReasonOf(const absl::StatusOr<TrainEnd>& end) {
  if (!end.ok()) return absl::IsOutOfRange(end.status()) ? "diverged" : "failed";
  return *end == TrainEnd::kFinished ? "finished" : "stopped";
}

absl::StatusOr<TrainEnd> Run(const JobSpec& job, const EngineTables& tables,
                             const TrainerOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, Trainer::Create(job, tables, options));
  // Only now: a job that is refused leaves the file of the run before as it was.
  RETURN_IF_ERROR(ReplaceFile(job.output_dir + "/job.yaml", Render(job)));
  ASSIGN_OR_RETURN(const TrainEnd end, trainer->Train());
  if (end == TrainEnd::kStopped) {
    options.log->Info(
        fmt::format("stopped by {} after iteration {} of {}, saved in {}/{}; the same command goes "
                    "on from there",
                    NameOfSignal(stop_signal), trainer->iteration(), trainer->total_iterations(),
                    CheckpointsFolder(job.output_dir), CheckpointName(trainer->iteration())));
  }
  return end;
}

}  // namespace

absl::StatusOr<int> TrainCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  RETURN_IF_ERROR(CheckCanTrain(job));
  RETURN_IF_ERROR(CheckSupported(job));
  HandleSignals();
  // First of all, for it locks the folder: nothing of a running job's files may be touched.
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointStore> store,
      CheckpointStore::Create({.output_dir = job.output_dir, .keep = job.checkpoint.keep}),
      "while opening output_dir ({})", job.Where("output_dir"));
  ASSIGN_OR_RETURN(const std::unique_ptr<RunLog> log,
                   RunLog::Create({.output_dir = job.output_dir}));
  const std::unique_ptr<Device> device = MakeCpuDevice(line.threads);
  const std::unique_ptr<Comm> comm = MakeSingleComm();
  const TrainerOptions options{.device = device.get(),
                               .comm = comm.get(),
                               .log = log.get(),
                               .store = store.get(),
                               .stop = &stop_asked,
                               .session = {.dump = line.dump}};
  const absl::StatusOr<TrainEnd> end = Run(job, tables, options);
  const bool stopped = end.ok() && *end == TrainEnd::kStopped;
  log->End(ReasonOf(end), stopped ? NameOfSignal(stop_signal) : MessageOf(end.status()));
  RETURN_IF_ERROR(end.status());
  return stopped ? kExitStopped : kExitDone;
}

}  // namespace capstan
