#include <fmt/format.h>

#include <algorithm>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/ir/text.h"
#include "engine/train/trainer.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"

namespace capstan {
namespace {

std::vector<const StateEntry*> Parameters(const Plan& plan) {
  std::vector<const StateEntry*> params;
  for (const StateEntry& e : plan.state) {
    if (e.kind == InputKind::kParam) params.push_back(&e);
  }
  std::sort(params.begin(), params.end(),
            [](const StateEntry* a, const StateEntry* b) { return a->name < b->name; });
  return params;
}

// State bytes by what they are for: "weights", "grad", "momentum", "statistics".
std::vector<std::pair<std::string, int64_t>> StateBySlot(const Plan& plan) {
  std::vector<std::pair<std::string, int64_t>> slots;
  const auto add = [&](const std::string& slot, int64_t bytes) {
    const auto it =
        std::find_if(slots.begin(), slots.end(), [&](const auto& s) { return s.first == slot; });
    if (it == slots.end()) {
      slots.emplace_back(slot, bytes);
    } else {
      it->second += bytes;
    }
  };
  for (const StateEntry& e : plan.state) {
    if (e.flat) continue;
    const size_t at = e.name.find('@');
    add(e.kind == InputKind::kParam ? "weights"
        : at == std::string::npos   ? "statistics"
                                    : e.name.substr(at + 1),
        e.type.bytes());
  }
  return slots;
}

std::string Summary(const JobSpec& job, const TrainingSetup& setup, const PipelineReport& report,
                    const Plan& plan) {
  int64_t count = 0;
  const std::vector<const StateEntry*> params = Parameters(plan);
  for (const StateEntry* p : params) count += p->type.count();
  std::string text = fmt::format("job {}: model {}, {} parameters in {} tensors\n", job.name,
                                 job.model.choice.name, count, params.size());
  if (setup.train_images != nullptr) {
    text += fmt::format("train: {} samples of {}, batches of {}\n", setup.train_images->size(),
                        setup.train_images->image_shape().ToString(),
                        job.dataset.train->batch_size.value_or(1));
  }
  if (setup.eval_images != nullptr) {
    text += fmt::format("eval: {} samples of {}, batches of {}\n", setup.eval_images->size(),
                        setup.eval_images->image_shape().ToString(),
                        job.dataset.eval->batch_size.value_or(1));
  }
  text += "\n" + report.ToString() + "\n";
  text += fmt::format("{:<28} {:>6} {:>12} {:>12} {:>12}\n", "program", "steps", "GFLOP", "moved",
                      "scratch");
  for (const PlannedProgram& p : plan.programs) {
    text += fmt::format("{:<28} {:>6} {:>12.3f} {:>12} {:>12}\n", p.name, p.steps.size(),
                        p.cost.flops * 1e-9, HumanBytes(p.cost.bytes),
                        HumanBytes(double(p.scratch_bytes)));
  }
  text += fmt::format("\nmemory: state {}", HumanBytes(double(plan.state_bytes)));
  std::string parts;
  for (const auto& [slot, bytes] : StateBySlot(plan)) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", slot, HumanBytes(double(bytes)));
  }
  const int64_t batches = BatchBytes(job, setup);
  return text + fmt::format(" ({}), scratch {}, batches {}, together {}\n", parts,
                            HumanBytes(double(plan.scratch_bytes)), HumanBytes(double(batches)),
                            HumanBytes(double(plan.state_bytes + plan.scratch_bytes + batches)));
}

std::string ParameterTable(const Plan& plan) {
  std::string text;
  for (const StateEntry* p : Parameters(plan)) {
    text += fmt::format("{:<40} {:<24} {}\n", p->name, p->type.ToString(),
                        PrintValue(TypeOf<Role>(), &p->role));
  }
  return text;
}

// Bytes alive at each step of each program: where the peak of the scratch arena comes from.
std::string MemoryTimeline(const Plan& plan) {
  std::string text;
  for (const PlannedProgram& p : plan.programs) {
    text += fmt::format("program {}: scratch {}\n", p.name, HumanBytes(double(p.scratch_bytes)));
    std::vector<std::pair<size_t, size_t>> lives(p.buffers.size(), {p.steps.size(), 0});
    for (size_t i = 0; i < p.steps.size(); ++i) {
      for (const auto* slots : {&p.steps[i].outputs, &p.steps[i].inputs}) {
        for (const int32_t b : *slots) {
          if (b == kNoBuffer) continue;
          auto& [first, last] = lives[static_cast<size_t>(b)];
          first = std::min(first, i);
          last = std::max(last, i);
        }
      }
    }
    for (size_t i = 0; i < p.steps.size(); ++i) {
      // Buffers that share memory count once: by the highest end of what is alive.
      std::vector<std::pair<int64_t, int64_t>> pieces;
      for (size_t b = 0; b < lives.size(); ++b) {
        if (p.buffers[b].arena != Arena::kScratch || lives[b].first > i || lives[b].second < i) {
          continue;
        }
        pieces.emplace_back(p.buffers[b].offset, p.buffers[b].offset + p.buffers[b].type.bytes());
      }
      if (p.steps[i].workspace_bytes > 0) {
        pieces.emplace_back(p.steps[i].workspace_offset,
                            p.steps[i].workspace_offset + p.steps[i].workspace_bytes);
      }
      std::sort(pieces.begin(), pieces.end());
      int64_t alive = 0, end = 0;
      for (const auto& [from, to] : pieces) {
        alive += std::max<int64_t>(0, to - std::max(from, end));
        end = std::max(end, to);
      }
      const double share = p.scratch_bytes > 0 ? double(alive) / double(p.scratch_bytes) : 0;
      text += fmt::format("  {:>4} {:>12} {:<40} {} @{}\n", i, HumanBytes(double(alive)),
                          std::string(static_cast<size_t>(std::min(share, 1.0) * 40), '#'),
                          p.steps[i].kernel->Key(), p.steps[i].label);
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<int> ExplainCommand(const CommandLine& line, const EngineTables& tables) {
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  ASSIGN_OR_RETURN(const TrainingSetup setup, SetUpTraining(job, tables));
  if (line.show == "model") {
    ASSIGN_OR_RETURN(const Module module, BuildModule(setup.request, tables));
    Print(PrintModule(module));
    return kExitDone;
  }
  ASSIGN_OR_RETURN(const CompileResult compiled, Compile(setup.request, tables, line.dump));
  if (line.show == "graph") {
    Print(PrintModule(compiled.module));
    return kExitDone;
  }
  ASSIGN_OR_RETURN(const Plan plan, BuildPlan(compiled.module, tables.kernels, {}));
  if (line.show == "summary") {
    Print(Summary(job, setup, compiled.report, plan));
  } else if (line.show == "parameters") {
    Print(ParameterTable(plan));
  } else if (line.show == "plan") {
    Print(PrintPlan(plan));
  } else if (line.show == "memory") {
    Print(MemoryTimeline(plan));
  } else {
    return InvalidArgument(
        "--show {}: there are summary, parameters, model, graph, plan and memory", line.show);
  }
  return kExitDone;
}

}  // namespace capstan
