#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/status.h"
#include "engine/ir/grad.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/host_values.h"
#include "ops/op_suite/run_kernel.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;
constexpr int kDirections = 2;

using Flags = std::vector<bool>;

double Dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

bool IsPresentFloat(const OpCall& call, int i) { return call.Has(i) && IsFloat(call.In(i).dtype); }

std::vector<int> DifferentiableInputs(const Example& example, const OpCall& call) {
  if (!example.differentiate.empty()) return example.differentiate;
  std::vector<int> inputs;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    if (IsPresentFloat(call, i)) inputs.push_back(i);
  }
  return inputs;
}

// The row's node and its backward in a graph of their own.
struct Backward {
  Graph graph;
  std::vector<ValueId> inputs, output_grads;  // kNoValue where absent
  std::vector<ValueId> grads;                 // by input
};

absl::StatusOr<Backward> BuildBackward(const SuiteTables& tables, const OpCall& call,
                                       const Flags& with_output_grad, const Flags& needed) {
  Backward b;
  Builder builder(&b.graph, &tables.ops, Mode::kTrain);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    b.inputs.push_back(call.inputs[i].has_value()
                           ? builder.Data(fmt::format("in{}", i), *call.inputs[i])
                           : kNoValue);
  }
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    b.output_grads.push_back(
        with_output_grad[o] ? builder.Data(fmt::format("dout{}", o), call.outputs[o]) : kNoValue);
  }
  builder.Add(*call.op, call.attrs, b.inputs);
  RETURN_IF_ERROR(builder.status());
  GradContext g(&builder, 0, b.output_grads, needed);
  call.op->grad(g);
  RETURN_IF_ERROR(builder.status(), "while building the gradient");
  b.grads = g.grads();
  b.grads.resize(call.inputs.size(), kNoValue);
  for (size_t i = 0; i < b.grads.size(); ++i) {
    if (!needed[i] || b.grads[i] == kNoValue) continue;
    if (b.graph.type(b.grads[i]) != *call.inputs[i]) {
      return InvalidArgument("the gradient of input {} is {} but the input is {}", i,
                             b.graph.type(b.grads[i]).ToString(), call.inputs[i]->ToString());
    }
  }
  return b;
}

class GradientCheck {
 public:
  GradientCheck(const SuiteTables& tables, const DrawnCall& drawn, std::vector<int> inputs)
      : tables_(tables), drawn_(drawn), inputs_(std::move(inputs)) {}

  absl::Status Run() {
    RETURN_IF_ERROR(ChooseOutputs());
    for (size_t o = 0; o < weights_.size(); ++o) {
      if (!matters_[o]) continue;
      weights_[o] = NormalValues(call().outputs[o].count(), fmt::format("weights {}", o));
    }
    ASSIGN_OR_RETURN(const std::vector<HostTensor> all, Gradients(Needed(inputs_)));
    for (const int i : inputs_) {
      const HostTensor& grad = all[static_cast<size_t>(i)];
      RETURN_IF_ERROR(CheckInput(i, grad), "while differentiating for input {} ('{}')", i,
                      NameOfInput(i));
      ASSIGN_OR_RETURN(const std::vector<HostTensor> alone, Gradients(Needed({i})));
      RETURN_IF_ERROR(CompareGradients(i, alone[static_cast<size_t>(i)], grad),
                      "while the gradient of input {} alone is needed", i);
    }
    return absl::OkStatus();
  }

 private:
  const OpCall& call() const { return drawn_.call; }
  const char* NameOfInput(int i) const {
    return call().op->inputs[std::min(i, call().op->inputs.size() - 1)].name;
  }
  Flags Needed(const std::vector<int>& inputs) const {
    Flags needed(call().inputs.size());
    for (const int i : inputs) needed[static_cast<size_t>(i)] = true;
    return needed;
  }

  // An output counts if its gradient alone gives some input a gradient.
  absl::Status ChooseOutputs() {
    matters_.assign(call().outputs.size(), false);
    weights_.resize(call().outputs.size());
    for (size_t o = 0; o < matters_.size(); ++o) {
      if (!IsFloat(call().outputs[o].dtype)) continue;
      Flags only(matters_.size());
      only[o] = true;
      ASSIGN_OR_RETURN(const Backward b, BuildBackward(tables_, call(), only, Needed(inputs_)),
                       "while a gradient arrives at output {} only", o);
      for (const int i : inputs_) {
        if (b.grads[static_cast<size_t>(i)] != kNoValue) matters_[o] = true;
      }
    }
    if (std::find(matters_.begin(), matters_.end(), true) != matters_.end()) {
      return absl::OkStatus();
    }
    return InvalidArgument("grad sets nothing; a row without gradient has grad = kNoGrad");
  }

  // By input; without memory where none is set.
  absl::StatusOr<std::vector<HostTensor>> Gradients(const Flags& needed) const {
    ASSIGN_OR_RETURN(const Backward b, BuildBackward(tables_, call(), matters_, needed));
    std::vector<HostTensor> values(b.graph.values().size());
    for (size_t i = 0; i < b.inputs.size(); ++i) {
      if (b.inputs[i] == kNoValue) continue;
      values[static_cast<size_t>(b.inputs[i])] = CopyOf(drawn_.inputs[i].view());
    }
    for (size_t o = 0; o < matters_.size(); ++o) {
      if (!matters_[o]) continue;
      HostTensor weights(call().outputs[o]);
      SetValues(weights.view(), weights_[o]);
      values[static_cast<size_t>(b.output_grads[o])] = std::move(weights);
    }
    RETURN_IF_ERROR(RunGraph(tables_, b.graph, &values), "while running the gradient");
    std::vector<HostTensor> grads(b.grads.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!needed[i] || b.grads[i] == kNoValue) continue;
      // A copy: two inputs may have one gradient.
      grads[i] = CopyOf(values[static_cast<size_t>(b.grads[i])].view());
    }
    return grads;
  }

  // sum over outputs of <weights, output>, where input `i` is moved along a direction.
  absl::StatusOr<double> Objective(int i, std::span<const double> direction, double step) const {
    const HostTensor& in = drawn_.inputs[static_cast<size_t>(i)];
    std::vector<double> moved = ValuesOf(in.view());
    for (size_t e = 0; e < moved.size(); ++e) moved[e] += step * direction[e];
    HostTensor there(in.type());
    SetValues(there.view(), moved);
    std::vector<TensorView> views = ViewsOf(drawn_.inputs);
    views[static_cast<size_t>(i)] = there.view();
    ASSIGN_OR_RETURN(const std::vector<HostTensor> outputs, RunReference(tables_, call(), views));
    double sum = 0;
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (matters_[o]) sum += Dot(weights_[o], ValuesOf(outputs[o].view()));
    }
    return sum;
  }

  absl::Status CheckInput(int i, const HostTensor& grad) const {
    const int64_t count = call().In(i).count();
    for (int d = 0; d < kDirections; ++d) {
      const std::vector<double> direction = NormalValues(count, fmt::format("direction {}", d));
      ASSIGN_OR_RETURN(const double ahead, Objective(i, direction, kStep));
      ASSIGN_OR_RETURN(const double behind, Objective(i, direction, -kStep));
      const double want = (ahead - behind) / (2 * kStep);
      const double got = grad.data() == nullptr ? 0 : Dot(ValuesOf(grad.view()), direction);
      const double limit = kTolerance * std::max({1.0, std::abs(got), std::abs(want)});
      // Written so that a NaN fails.
      if (std::abs(got - want) <= limit) continue;
      return InvalidArgument("the gradient{} says {}, central differences say {}",
                             grad.data() == nullptr ? ", which is not set," : "", got, want);
    }
    return absl::OkStatus();
  }

  static absl::Status CompareGradients(int i, const HostTensor& got, const HostTensor& want) {
    if (got.data() == nullptr && want.data() == nullptr) return absl::OkStatus();
    if (got.data() == nullptr) return InvalidArgument("it is not set");
    if (want.data() == nullptr) return absl::OkStatus();
    return CompareValues(fmt::format("gradient of input {}", i), got.view(), want.view(), 1e-12);
  }

  const SuiteTables& tables_;
  const DrawnCall& drawn_;
  const std::vector<int> inputs_;
  Flags matters_;                             // by output
  std::vector<std::vector<double>> weights_;  // by output, where it matters
};

}  // namespace

absl::Status CheckGradient(const SuiteTables& tables, const OpDef& op, const Example& example) {
  if (example.error != nullptr || op.grad == kNoGrad) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DrawnCall drawn, DrawCall(tables, op, example));
  std::vector<int> inputs = DifferentiableInputs(example, drawn.call);
  for (const int i : inputs) {
    if (!IsPresentFloat(drawn.call, i)) {
      return InvalidArgument("the example differentiates input {}, which is no float tensor", i);
    }
  }
  if (inputs.empty()) return absl::OkStatus();
  return GradientCheck(tables, drawn, std::move(inputs)).Run();
}

}  // namespace capstan
