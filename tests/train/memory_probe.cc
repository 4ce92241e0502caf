// Says what a job was planned to need and what it took: runs it (`train` or `eval`) in this process
// and prints `planned` and `grown` bytes. memory_test.cc starts it.
//
//   memory_probe train job.yaml
#include <cstdio>
#include <string_view>

#include "engine/base/status.h"
#include "engine/config/load_job.h"
#include "engine/train/loss_options.h"
#include "engine/train/model_state.h"
#include "engine/train/trainer.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

// State, scratch and batches.
int64_t Planned(const Session& session, const JobSpec& job, const TrainingSetup& setup) {
  return session.plan().state_bytes + session.plan().scratch_bytes + BatchBytes(job, setup);
}

absl::StatusOr<int64_t> Train(const JobSpec& job, const EngineTables& tables, Device* device) {
  const std::unique_ptr<Comm> comm = MakeSingleComm();
  ASSIGN_OR_RETURN(const auto store, CheckpointStore::Create({.output_dir = job.output_dir,
                                                              .keep = job.checkpoint.keep}));
  ASSIGN_OR_RETURN(const auto log, RunLog::Create({.output_dir = job.output_dir, .quiet = true}));
  ASSIGN_OR_RETURN(
      const auto trainer,
      Trainer::Create(
          job, tables,
          {.device = device, .comm = comm.get(), .log = log.get(), .store = store.get()}));
  RETURN_IF_ERROR(trainer->Train().status());
  ASSIGN_OR_RETURN(const TrainingSetup setup, SetUpTraining(job, tables));
  return Planned(trainer->session(), job, setup);
}

absl::StatusOr<int64_t> Evaluate(JobSpec job, const EngineTables& tables, Device* device) {
  job.dataset.train.reset();
  ASSIGN_OR_RETURN(const TrainingSetup setup, SetUpTraining(job, tables));
  ASSIGN_OR_RETURN(const auto session, Session::Create(setup.request, tables, {}, device));
  RETURN_IF_ERROR(InitializeState(session->executor(), 0));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Loader> loader,
      OpenLoader(*job.dataset.eval, setup.eval_images, {.mode = SamplerMode::kEvaluate}));
  RETURN_IF_ERROR(EvaluateAll(*session, *loader, -100).status());
  return Planned(*session, job, setup);
}

absl::Status Main(std::string_view what, const std::string& path) {
  const EngineTables tables = MakeTables();
  ASSIGN_OR_RETURN(const JobSpec job, LoadJob(path, tables.choices));
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  const int64_t before = ResidentBytes();
  ASSIGN_OR_RETURN(const int64_t planned, what == "train" ? Train(job, tables, device.get())
                                                          : Evaluate(job, tables, device.get()));
  std::printf("%ld %ld\n", planned, PeakResidentBytes() - before);
  return absl::OkStatus();
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const absl::Status status = capstan::Main(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", capstan::MessageOf(status).c_str());
  return 1;
}
