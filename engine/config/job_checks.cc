#include "engine/config/job_checks.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

// Collects what is wrong at the places where the job was written.
class Checker {
 public:
  Checker(const JobSpec& job, Diagnostics* diagnostics) : job_(job), diagnostics_(diagnostics) {}

  void Fault(const std::string& path, std::string problem) {
    diagnostics_->Add(job_.sources.Find(path), path, std::move(problem));
  }

  void CheckDataset(const DatasetSpec& set, const std::string& path) {
    if (set.batch_size.has_value() == set.tokens_per_batch.has_value()) {
      Fault(path + ".batch_size", set.batch_size.has_value()
                                      ? "given beside tokens_per_batch; keep one of the two"
                                      : "missing; give it, or tokens_per_batch for packed text");
    }
  }

  void CheckMicroBatches(const DatasetSpec& set) {
    const int64_t parts = job_.strategy.micro_batches;
    if (set.batch_size.value_or(parts) % parts == 0) return;
    Fault("dataset.train.batch_size",
          fmt::format("{} is not a multiple of strategy.micro_batches = {}; change one of them",
                      *set.batch_size, parts));
  }

  void CheckGradClip(const GradClipSpec& clip) {
    const int ways = clip.global_norm.has_value() + clip.norm.has_value() + clip.value.has_value();
    if (ways == 1) return;
    Fault("optimizer.grad_clip",
          fmt::format("gives {} of global_norm, norm and value; give exactly one, or null",
                      ways == 0 ? "none" : "several"));
  }

  void CheckDegrees() {
    const HybridSpec& h = job_.hybrid_configs;
    int derived = 0;
    for (const FieldInfo& field : HybridSpec::Fields()) {
      const std::string name = field.name;
      if (!name.ends_with("_degree")) continue;
      const std::string path = "hybrid_configs." + name;
      const auto degree = *static_cast<const int64_t*>(field.Get(&h));
      if (degree == 0) {
        Fault(path, "0 is out of range; it must be at least 1, or -1 for what is left");
      } else if (degree == -1 && ++derived == 2) {
        Fault(path, "a second degree is -1; only one can be derived from the number of processes");
      } else if (degree != 1 && h.mode == HybridSpec::Mode::kAuto) {
        Fault(path, "given although the mode is auto; remove one of the two");
      }
    }
    if (h.sequence_parallel && h.mp_degree == 1 && h.mode == HybridSpec::Mode::kManual) {
      Fault("hybrid_configs.sequence_parallel",
            "needs mp_degree above 1, for it splits what tensor-parallel ranks repeat");
    }
  }

  void CheckPipeline() {
    const bool interleaved = job_.strategy.schedule == StrategySpec::Schedule::kInterleaved;
    if (interleaved == (job_.strategy.virtual_pp_degree > 1)) return;
    Fault(interleaved ? "strategy.schedule" : "strategy.virtual_pp_degree",
          interleaved ? "interleaved needs virtual_pp_degree above 1"
                      : "above 1 needs schedule: interleaved");
  }

 private:
  const JobSpec& job_;
  Diagnostics* diagnostics_;
};

// A part of the job that a command cannot do without.
struct Part {
  bool there;
  const char* path;
  const char* instead = "";
};

absl::Status Needs(const JobSpec& job, std::string_view command, const std::vector<Part>& parts) {
  Diagnostics diagnostics;
  for (const Part& part : parts) {
    if (part.there) continue;
    diagnostics.Add(job.sources.Find(part.path), part.path,
                    fmt::format("missing; {} needs it{}", command, part.instead));
  }
  return diagnostics.ToStatus();
}

}  // namespace

void CheckJob(const JobSpec& job, Diagnostics* diagnostics) {
  Checker checker(job, diagnostics);
  if (job.dataset.train.has_value()) {
    checker.CheckDataset(*job.dataset.train, "dataset.train");
    checker.CheckMicroBatches(*job.dataset.train);
  }
  if (job.dataset.eval.has_value()) checker.CheckDataset(*job.dataset.eval, "dataset.eval");
  if (job.optimizer.has_value() && job.optimizer->grad_clip.has_value()) {
    checker.CheckGradClip(*job.optimizer->grad_clip);
  }
  checker.CheckDegrees();
  checker.CheckPipeline();
}

absl::Status CheckCanTrain(const JobSpec& job) {
  return Needs(job, "training",
               {{job.dataset.train.has_value(), "dataset.train"},
                {job.loss.has_value(), "loss"},
                {job.optimizer.has_value(), "optimizer"},
                {job.train.epochs.has_value() || job.train.max_iterations.has_value(),
                 "train.epochs", ", or max_iterations"}});
}

absl::Status CheckCanEvaluate(const JobSpec& job) {
  return Needs(job, "evaluation", {{job.dataset.eval.has_value(), "dataset.eval"}});
}

absl::StatusOr<Degrees> ResolveDegrees(const JobSpec& job, int64_t world) {
  const HybridSpec& h = job.hybrid_configs;
  CHECK(h.mode == HybridSpec::Mode::kManual) << "the planner resolves hybrid_configs: auto";
  CHECK_GE(world, 1);
  Degrees d{h.dp_degree, h.pp_degree, h.sharding_degree, h.mp_degree};
  const std::string shown =
      fmt::format("dp {} x mp {} x pp {} x sharding {}", d.dp, d.mp, d.pp, d.sharding);
  const auto error = [&](const std::string& problem) {
    return InvalidArgument("{}: hybrid_configs: {} {}; change a degree or the number of processes",
                           job.Where("hybrid_configs"), shown, problem);
  };
  // A degree is at most 2^20, so a product below this can be multiplied once more.
  constexpr int64_t kLarge = int64_t{1} << 40;
  int64_t left = world;
  int64_t* derived = nullptr;
  int64_t product = 1;
  for (int64_t* degree : {&d.dp, &d.mp, &d.pp, &d.sharding}) {
    if (*degree == -1) {
      derived = degree;
      continue;
    }
    if (product > kLarge) return error(fmt::format("is far more than {} processes", world));
    product *= *degree;
    left = left % *degree == 0 ? left / *degree : 0;
  }
  if (derived != nullptr) {
    if (left == 0) {
      return error(fmt::format("cannot be made equal to {} processes: {} does not divide {}", world,
                               product, world));
    }
    *derived = left;
    return d;
  }
  if (product != world) {
    return error(fmt::format("= {} but {} process{}", product, world, world == 1 ? "" : "es"));
  }
  return d;
}

}  // namespace capstan
