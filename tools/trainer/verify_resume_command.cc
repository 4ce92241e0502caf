#include <fmt/format.h>

#include <chrono>

#include "engine/base/status.h"
#include "engine/config/job_checks.h"
#include "engine/train/verify_resume.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"

namespace capstan {

absl::StatusOr<int> VerifyResumeCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  RETURN_IF_ERROR(CheckCanTrain(job));
  const std::string folder = line.work_dir.empty() ? job.output_dir + "/verify" : line.work_dir;
  ASSIGN_OR_RETURN(const std::unique_ptr<RunLog> log,
                   RunLog::Create({.output_dir = folder + "_log", .quiet = true}));
  const std::unique_ptr<Device> device = MakeCpuDevice(line.threads);
  const std::unique_ptr<Comm> comm = MakeSingleComm();
  const TrainerOptions trainer{.device = device.get(), .comm = comm.get(), .log = log.get()};
  ASSIGN_OR_RETURN(const VerifyResumeReport report,
                   VerifyResume(job, tables, trainer,
                                {.folder = folder,
                                 .points = line.points,
                                 .iterations = line.iterations,
                                 .seed = static_cast<uint64_t>(job.train.seed)}));
  Print(fmt::format("{} iterations, stopped and resumed at {}: {} iterations compared\n",
                    report.iterations, fmt::join(report.points, ", "), report.compared));
  if (!report.difference.empty()) {
    Print(fmt::format("DIFFERENT: {}\n", report.difference));
    return kExitDifference;
  }
  Print(fmt::format("losses, weights and optimizer state are equal bit for bit\n"));
  return kExitDone;
}

}  // namespace capstan
