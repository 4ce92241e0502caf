#include "engine/runtime/executor.h"

#include <chrono>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

// The first bytes of the input arena: RunValues and every input that fits. They are uploaded in one
// copy.
constexpr int64_t kHeadBytes = 1024;
constexpr int64_t kAlignment = 256;

int64_t AlignedUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

// A step with addresses instead of offsets. On the CPU, data inputs are filled in at each run.
struct Executor::BoundStep {
  const Step* step;
  void* workspace;
  std::vector<TensorView> outputs;
  std::vector<TensorView> inputs;
  std::vector<std::pair<size_t, size_t>> data_inputs;  // argument, index in RunArgs::inputs
};

struct Executor::BoundProgram {
  std::vector<BoundStep> steps;
  std::vector<int64_t> input_offsets;  // in the input arena
  bool has_run = false;
  std::unique_ptr<Recording> recording;
};

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Plan* plan, Device* device) {
  CHECK(plan->device == device->kind()) << "a plan for another device";
  std::unique_ptr<Executor> executor(new Executor(plan, device));
  ASSIGN_OR_RETURN(executor->state_, device->Allocate(plan->state_bytes),
                   "while allocating weights and optimizer state");
  ASSIGN_OR_RETURN(executor->scratch_, device->Allocate(plan->scratch_bytes),
                   "while allocating activations");
  executor->programs_.resize(plan->programs.size());
  if (!executor->on_host()) {
    executor->PlaceInputs();
    ASSIGN_OR_RETURN(executor->inputs_, device->Allocate(executor->input_bytes_),
                     "while allocating a batch");
  }
  executor->Bind();
  return executor;
}

Executor::Executor(const Plan* plan, Device* device) : plan_(plan), device_(device) {}

Executor::~Executor() {
  device_->Free(inputs_, input_bytes_);
  device_->Free(scratch_, plan_->scratch_bytes);
  device_->Free(state_, plan_->state_bytes);
}

void Executor::PlaceInputs() {
  input_bytes_ = kHeadBytes;
  for (size_t p = 0; p < programs_.size(); ++p) {
    const PlannedProgram& planned = plan_->programs[p];
    int64_t head = AlignedUp(sizeof(RunValues), sizeof(double)), end = kHeadBytes;
    for (const NamedBuffer& in : planned.inputs) {
      const int64_t bytes = planned.buffers[static_cast<size_t>(in.buffer)].type.bytes();
      int64_t& next = head + bytes <= kHeadBytes ? head : end;
      programs_[p].input_offsets.push_back(next);
      next = AlignedUp(next + bytes, &next == &head ? int64_t{sizeof(double)} : kAlignment);
    }
    input_bytes_ = std::max(input_bytes_, end);
  }
}

void* Executor::Address(const Buffer& buffer, const BoundProgram& bound) const {
  if (buffer.arena == Arena::kInput) {
    if (inputs_ == nullptr) return nullptr;
    return static_cast<char*>(inputs_) + bound.input_offsets[static_cast<size_t>(buffer.offset)];
  }
  return static_cast<char*>(buffer.arena == Arena::kState ? state_ : scratch_) + buffer.offset;
}

void Executor::Bind() {
  for (size_t p = 0; p < programs_.size(); ++p) {
    const PlannedProgram& planned = plan_->programs[p];
    BoundProgram& program = programs_[p];
    for (const Step& step : planned.steps) {
      BoundStep bound{.step = &step,
                      .workspace = static_cast<char*>(scratch_) + step.workspace_offset};
      for (const int32_t b : step.outputs) {
        const Buffer& buffer = planned.buffers[static_cast<size_t>(b)];
        bound.outputs.push_back({Address(buffer, program), buffer.type});
      }
      for (const int32_t b : step.inputs) {
        if (b == kNoBuffer) {
          bound.inputs.emplace_back();
          continue;
        }
        const Buffer& buffer = planned.buffers[static_cast<size_t>(b)];
        if (buffer.arena == Arena::kInput && on_host()) {
          bound.data_inputs.emplace_back(bound.inputs.size(), static_cast<size_t>(buffer.offset));
        }
        bound.inputs.push_back({Address(buffer, program), buffer.type});
      }
      program.steps.push_back(std::move(bound));
    }
  }
}

void Executor::CheckInputs(const PlannedProgram& planned, const RunArgs& args) const {
  CHECK_EQ(args.inputs.size(), planned.inputs.size()) << "inputs of " << planned.name;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const TensorType& want = planned.buffers[static_cast<size_t>(planned.inputs[i].buffer)].type;
    CHECK(args.inputs[i].type == want)
        << planned.name << ": input " << planned.inputs[i].name << " is "
        << args.inputs[i].type.ToString() << ", planned for " << want.ToString();
  }
}

absl::Status Executor::Upload(const BoundProgram& bound, const RunArgs& args,
                              const RunValues& values) {
  char head[kHeadBytes] = {};
  std::memcpy(head, &values, sizeof(values));
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const TensorView& in = args.inputs[i];
    const int64_t offset = bound.input_offsets[i];
    if (offset < kHeadBytes) {
      std::memcpy(head + offset, in.data, static_cast<size_t>(in.type.bytes()));
    } else {
      RETURN_IF_ERROR(
          device_->CopyFromHost(static_cast<char*>(inputs_) + offset, in.data, in.type.bytes()));
    }
  }
  return device_->CopyFromHost(inputs_, head, kHeadBytes);
}

absl::Status Executor::Run(int program, const RunArgs& args, StepTimes* times) {
  const PlannedProgram& planned = plan_->programs[static_cast<size_t>(program)];
  BoundProgram& bound = programs_[static_cast<size_t>(program)];
  CheckInputs(planned, args);
  KernelContext context;
  context.random = RandomKey(args.seed).Mix(static_cast<uint64_t>(args.iteration));
  context.sample_offset = args.sample_offset;
  context.threads = device_->threads();
  context.stream = device_->stream();
  context.libraries = device_->libraries();
  if (on_host()) {
    for (BoundStep& step : bound.steps) {
      for (const auto& [argument, index] : step.data_inputs) {
        step.inputs[argument].data = args.inputs[index].data;
      }
    }
  } else {
    context.run_values = static_cast<const RunValues*>(inputs_);
    RETURN_IF_ERROR(Upload(bound, args, {context.random.key(), args.sample_offset}),
                    "while copying a batch for {}", planned.name);
  }
  if (times == nullptr && bound.has_run && bound.recording == nullptr) {
    ASSIGN_OR_RETURN(bound.recording,
                     device_->Record([&] { return RunSteps(planned, bound, context, nullptr); }),
                     "while recording {}", planned.name);
  }
  if (times == nullptr && bound.recording != nullptr) {
    return Annotate(bound.recording->Launch(), "while running {}", planned.name);
  }
  bound.has_run = true;
  return RunSteps(planned, bound, context, times);
}

absl::Status Executor::RunSteps(const PlannedProgram& planned, BoundProgram& bound,
                                KernelContext context, StepTimes* times) {
  if (times != nullptr) {
    times->seconds.clear();
    RETURN_IF_ERROR(device_->Synchronize());
  }
  for (const BoundStep& step : bound.steps) {
    context.workspace = step.workspace;
    context.workspace_bytes = step.step->workspace_bytes;
    context.prepared = step.step->prepared.get();
    const auto start = std::chrono::steady_clock::now();
    step.step->kernel->fn(context, step.outputs, step.inputs, step.step->attrs);
    if (context.status.ok() && times != nullptr) context.status = device_->Synchronize();
    if (!context.status.ok()) {
      return Annotate(context.status, "while running {} for '{}' in {}", step.step->kernel->Key(),
                      step.step->label, planned.name);
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
    return {Address(buffer, programs_[static_cast<size_t>(program)]), buffer.type};
  }
  CHECK(false) << planned.name << " has no output " << name;
  return {};
}

absl::StatusOr<TensorView> Executor::OutputOnHost(int program, std::string_view name) {
  const TensorView output = Output(program, name);
  if (on_host()) return output;
  HostTensor& copy = on_host_[output.data];
  if (copy.type() != output.type) copy = HostTensor(output.type);
  RETURN_IF_ERROR(device_->CopyToHost(copy.data(), output.data, output.type.bytes()),
                  "while reading '{}' of {}", name,
                  plan_->programs[static_cast<size_t>(program)].name);
  return copy.view();
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
