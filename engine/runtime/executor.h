// Executor: owns the arenas of a plan and runs its programs, step by step.
//
// After Create nothing is allocated. One thread at a time; outputs are valid until the next run.
// On the CPU data inputs are used where they lie and must stay valid until the run has ended; on
// other devices they are copied there first. A program runs step by step the first time; devices
// that can then record it, and replay the recording from then on.
//
//   ASSIGN_OR_RETURN(auto executor, Executor::Create(&plan, device));
//   RETURN_IF_ERROR(executor->Run(program, {.inputs = {image, label}, .seed = 42}));
//   ASSIGN_OR_RETURN(TensorView loss, executor->OutputOnHost(program, "loss"));
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/plan/plan.h"
#include "engine/runtime/device.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

struct RunArgs {
  // Host memory, in the order of PlannedProgram::inputs and of its types.
  std::span<const TensorView> inputs;
  uint64_t seed = 0;
  int64_t iteration = 0;      // finished updates; keys random numbers
  int64_t sample_offset = 0;  // samples of this update before this batch
};

// Seconds that each step of a program took in one run, for profiles; the device is idle between
// steps.
struct StepTimes {
  std::vector<double> seconds;
};

class Executor {
 public:
  // `plan` and `device` must outlive the executor. The state arena is zero at first.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const Plan* plan, Device* device);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues the program; on the CPU it has run on return. Errors of a library name the step. `times`
  // may be null.
  absl::Status Run(int program, const RunArgs& args, StepTimes* times = nullptr);

  // Device memory of an output, of a state; CHECKs that the name exists.
  TensorView Output(int program, std::string_view name) const;
  TensorView State(std::string_view name) const;
  TensorView State(const StateEntry& entry) const;
  // An output in host memory, once the work before is done; valid until the next call for it.
  absl::StatusOr<TensorView> OutputOnHost(int program, std::string_view name);

  const Plan& plan() const { return *plan_; }
  Device& device() const { return *device_; }
  // Of the device, for data inputs; the plan's arenas come on top.
  int64_t input_bytes() const { return input_bytes_; }

 private:
  struct BoundStep;
  struct BoundProgram;

  Executor(const Plan* plan, Device* device);
  bool on_host() const { return device_->kind() == DeviceKind::kCpu; }
  // Places the data inputs of every program in the input arena.
  void PlaceInputs();
  void Bind();
  void* Address(const Buffer& buffer, const BoundProgram& bound) const;
  void CheckInputs(const PlannedProgram& planned, const RunArgs& args) const;
  absl::Status Upload(const BoundProgram& bound, const RunArgs& args, const RunValues& values);
  absl::Status RunSteps(const PlannedProgram& planned, BoundProgram& bound, KernelContext context,
                        StepTimes* times);

  const Plan* const plan_;
  Device* const device_;
  void* state_ = nullptr;
  void* scratch_ = nullptr;
  void* inputs_ = nullptr;  // null on the CPU
  int64_t input_bytes_ = 0;
  std::vector<BoundProgram> programs_;
  std::map<const void*, HostTensor> on_host_;  // by device memory
};

}  // namespace capstan
