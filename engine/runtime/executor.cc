#include "engine/runtime/executor.h"

#include <chrono>

#include "engine/base/check.h"
#include "engine/base/status.h"

namespace capstan {

// A step with addresses instead of offsets. Data inputs are filled in at each run.
struct Executor::BoundStep {
  const Step* step;
  void* workspace;
  std::vector<TensorView> outputs;
  std::vector<TensorView> inputs;
  std::vector<std::pair<size_t, size_t>> data_inputs;  // argument, index in RunArgs::inputs
};

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Plan* plan, Device* device) {
  CHECK(plan->device == device->kind()) << "a plan for another device";
  std::unique_ptr<Executor> executor(new Executor(plan, device));
  ASSIGN_OR_RETURN(executor->state_, device->Allocate(plan->state_bytes),
                   "while allocating weights and optimizer state");
  ASSIGN_OR_RETURN(executor->scratch_, device->Allocate(plan->scratch_bytes),
                   "while allocating activations");
  executor->Bind();
  return executor;
}

Executor::Executor(const Plan* plan, Device* device) : plan_(plan), device_(device) {}

Executor::~Executor() {
  device_->Free(scratch_, plan_->scratch_bytes);
  device_->Free(state_, plan_->state_bytes);
}

void* Executor::Address(const Buffer& buffer) const {
  if (buffer.arena == Arena::kInput) return nullptr;
  return static_cast<char*>(buffer.arena == Arena::kState ? state_ : scratch_) + buffer.offset;
}

void Executor::Bind() {
  for (const PlannedProgram& program : plan_->programs) {
    std::vector<BoundStep>& steps = programs_.emplace_back();
    for (const Step& step : program.steps) {
      BoundStep bound{.step = &step,
                      .workspace = static_cast<char*>(scratch_) + step.workspace_offset};
      for (const int32_t b : step.outputs) {
        const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
        bound.outputs.push_back({Address(buffer), buffer.type});
      }
      for (const int32_t b : step.inputs) {
        if (b == kNoBuffer) {
          bound.inputs.emplace_back();
          continue;
        }
        const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
        if (buffer.arena == Arena::kInput) {
          bound.data_inputs.emplace_back(bound.inputs.size(), static_cast<size_t>(buffer.offset));
        }
        bound.inputs.push_back({Address(buffer), buffer.type});
      }
      steps.push_back(std::move(bound));
    }
  }
}

absl::Status Executor::Run(int program, const RunArgs& args, StepTimes* times) {
  const PlannedProgram& planned = plan_->programs[static_cast<size_t>(program)];
  CHECK_EQ(args.inputs.size(), planned.inputs.size()) << "inputs of " << planned.name;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const TensorType& want = planned.buffers[static_cast<size_t>(planned.inputs[i].buffer)].type;
    CHECK(args.inputs[i].type == want)
        << planned.name << ": input " << planned.inputs[i].name << " is "
        << args.inputs[i].type.ToString() << ", planned for " << want.ToString();
  }
  KernelContext context;
  context.random = RandomKey(args.seed).Mix(static_cast<uint64_t>(args.iteration));
  context.sample_offset = args.sample_offset;
  context.threads = device_->threads();
  context.stream = device_->stream();
  if (times != nullptr) times->seconds.clear();
  for (BoundStep& bound : programs_[static_cast<size_t>(program)]) {
    for (const auto& [argument, index] : bound.data_inputs) {
      bound.inputs[argument].data = args.inputs[index].data;
    }
    context.workspace = bound.workspace;
    context.workspace_bytes = bound.step->workspace_bytes;
    context.prepared = bound.step->prepared.get();
    const auto start = std::chrono::steady_clock::now();
    bound.step->kernel->fn(context, bound.outputs, bound.inputs, bound.step->attrs);
    if (!context.status.ok()) {
      return Annotate(context.status, "while running {} for '{}' in {}", bound.step->kernel->Key(),
                      bound.step->label, planned.name);
    }
    if (times != nullptr) {
      times->seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  return absl::OkStatus();
}

TensorView Executor::Output(int program, std::string_view name) const {
  const PlannedProgram& planned = plan_->programs[static_cast<size_t>(program)];
  for (const NamedBuffer& o : planned.outputs) {
    if (o.name != name) continue;
    const Buffer& buffer = planned.buffers[static_cast<size_t>(o.buffer)];
    CHECK(buffer.arena != Arena::kInput) << "output " << name << " is an input";
    return {Address(buffer), buffer.type};
  }
  CHECK(false) << planned.name << " has no output " << name;
  return {};
}

TensorView Executor::State(std::string_view name) const {
  const StateEntry* entry = plan_->FindState(name);
  CHECK(entry != nullptr) << "no state " << name;
  return State(*entry);
}

TensorView Executor::State(const StateEntry& entry) const {
  return {static_cast<char*>(state_) + entry.offset, entry.type};
}

}  // namespace capstan
