// Executor: owns the arenas of a plan and runs its programs, step by step.
//
// After Create nothing is allocated. One thread at a time; data inputs must stay valid until the
// run has ended, outputs are valid until the next run.
//
//   ASSIGN_OR_RETURN(auto executor, Executor::Create(&plan, device));
//   RETURN_IF_ERROR(executor->Run(program, {.inputs = {image, label}, .seed = 42}));
//   float loss = *executor->Output(program, "loss").Data<float>();
#pragma once

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
  // Device memory, in the order of PlannedProgram::inputs and of its types.
  std::span<const TensorView> inputs;
  uint64_t seed = 0;
  int64_t iteration = 0;      // finished updates; keys random numbers
  int64_t sample_offset = 0;  // samples of this update before this batch
};

// Seconds that each step of a program took in one run, for profiles.
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

  // Errors of a library name the step. `times` may be null.
  absl::Status Run(int program, const RunArgs& args, StepTimes* times = nullptr);

  // Device memory of an output, of a state; CHECKs that the name exists.
  TensorView Output(int program, std::string_view name) const;
  TensorView State(std::string_view name) const;
  TensorView State(const StateEntry& entry) const;

  const Plan& plan() const { return *plan_; }
  Device& device() const { return *device_; }

 private:
  struct BoundStep;

  Executor(const Plan* plan, Device* device);
  void Bind();
  void* Address(const Buffer& buffer) const;

  const Plan* const plan_;
  Device* const device_;
  void* state_ = nullptr;
  void* scratch_ = nullptr;
  std::vector<std::vector<BoundStep>> programs_;
};

}  // namespace capstan
