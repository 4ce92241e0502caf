// Session: a compiled job on one rank, ready to run: plan, executor and the programs by shape.
//
//   ASSIGN_OR_RETURN(auto session, Session::Create(request, tables, {}, device));
//   RETURN_IF_ERROR(InitializeState(session->executor(), seed));
//   ASSIGN_OR_RETURN(double loss, session->RunMicro(batch, args));
//   RETURN_IF_ERROR(session->RunUpdate(0.1, iteration));
//
// One thread at a time. Batches are host tensors as the loader gives them.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/plan/lower.h"
#include "engine/runtime/executor.h"
#include "engine/train/compile.h"

namespace capstan {

struct SessionOptions {
  DumpOptions dump;
  std::string impl;  // kernels of this implementation only; empty: the best
};

struct MicroBatch {
  TensorView image;  // [n,c,h,w]
  TensorView label;  // i64[n]
};

struct MicroArgs {
  bool first = true;       // of its update: gradients are overwritten
  double inv_targets = 1;  // 1 / valid targets of the whole update
  uint64_t seed = 0;
  int64_t iteration = 0;      // finished updates
  int64_t sample_offset = 0;  // samples of this update before this batch
};

struct EvaluateResult {
  double loss_sum = 0;  // over the valid targets; 0 without labels
  TensorView logits;    // [n, classes], valid until the next run
};

class Session {
 public:
  // `tables` and `device` must outlive the session.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const CompileRequest& request,
                                                         const EngineTables& tables,
                                                         const SessionOptions& options,
                                                         Device* device);

  // Forward and backward of one batch; returns its part of the update's mean loss.
  absl::StatusOr<double> RunMicro(const MicroBatch& batch, const MicroArgs& args);
  // Applies the gathered gradients.
  absl::Status RunUpdate(double lr, int64_t iteration);
  // Forward only. The batch must have a planned shape.
  absl::StatusOr<EvaluateResult> RunEvaluate(const MicroBatch& batch);
  // Sizes of evaluation batches that are planned, ascending.
  std::vector<int64_t> EvaluateSizes() const;

  Executor& executor() { return *executor_; }
  const Plan& plan() const { return plan_; }
  const Module& module() const { return compiled_.module; }
  const PipelineReport& report() const { return compiled_.report; }

 private:
  Session() = default;

  absl::StatusOr<int> Find(ProgramKind kind, const TensorView& image) const;
  // The value of a float output.
  absl::StatusOr<double> ScalarOutput(int program, std::string_view name);

  CompileResult compiled_;
  Plan plan_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace capstan
