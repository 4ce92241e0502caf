#include "ops/op_suite/drawn_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/base/random.h"
#include "engine/base/status.h"
#include "ops/op_suite/host_values.h"
#include "ops/op_suite/run_kernel.h"

namespace capstan {
namespace {

RandomKey KeyOf(std::string_view name) { return RandomKey(1).Mix(name); }

// All different: a shuffled ramp in [-1, 1).
std::vector<double> DistinctValues(size_t count, const RandomKey& key) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = 2.0 * static_cast<double>(i) / static_cast<double>(count) - 1;
  }
  for (size_t i = count; i > 1; --i) std::swap(values[i - 1], values[key.Below(i, i)]);
  return values;
}

double DrawOne(const ExampleInput& e, const RandomKey& key, uint64_t i) {
  switch (e.draw) {
    case Draw::kNormal:
      return key.Normal(i);
    case Draw::kPositive:
      return 0.5 + key.UniformDouble(i);
    case Draw::kAwayFromZero: {
      const double u = 2 * key.UniformDouble(i) - 1;
      return u < 0 ? u - 0.2 : u + 0.2;
    }
    case Draw::kIndex:
      return static_cast<double>(key.Below(i, static_cast<uint64_t>(e.limit)));
    default:
      CHECK(false) << "drawn elsewhere";
      return 0;
  }
}

std::vector<double> DrawValues(const ExampleInput& e, const RandomKey& key) {
  const auto count = static_cast<size_t>(e.type.count());
  if (e.draw == Draw::kValues) return e.values;
  if (e.draw == Draw::kDistinct) return DistinctValues(count, key);
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = DrawOne(e, key, i);
  return values;
}

TensorType TypeFor(const ExampleInput& e, const DrawOptions& options) {
  TensorType type = e.type;
  if (type.dtype == DType::kF32) type.dtype = options.dtype;
  return type;
}

void SetFormat(TensorType* type, MemoryFormat format) {
  if (type->ndim() == 4 && type->dtype != DType::kOpaque) type->format = format;
}

// Infer works on plain types; formats are chosen afterwards, as by the layout pass.
absl::Status InferWithFormat(OpCall* call) {
  OpCall plain = *call;
  MemoryFormat format = MemoryFormat::kPlain;
  for (auto& in : plain.inputs) {
    if (!in.has_value()) continue;
    if (in->format != MemoryFormat::kPlain) format = in->format;
    in->format = MemoryFormat::kPlain;
  }
  RETURN_IF_ERROR(InferCall(plain));
  call->outputs = plain.outputs;
  for (TensorType& out : call->outputs) {
    if (out.format != MemoryFormat::kPlain) {
      return InvalidArgument("infer of {} sets a memory format", call->op->name);
    }
    SetFormat(&out, format);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<double> NormalValues(int64_t count, std::string_view name) {
  const RandomKey key = KeyOf(name);
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = key.Normal(i);
  return values;
}

absl::StatusOr<ForwardResult> ForwardValue(const SuiteTables& tables, const ExampleInput& e,
                                           std::span<const HostTensor> inputs,
                                           std::string_view impl) {
  OpCall call{.op = e.forward, .attrs = e.forward_attrs};
  if (call.attrs.empty()) call.attrs = AnyStruct::Create(*e.forward->attrs);
  std::vector<TensorView> views;
  for (const int i : e.forward_inputs) {
    const HostTensor& in = inputs[static_cast<size_t>(i)];
    const bool absent = in.data() == nullptr;
    call.inputs.push_back(absent ? std::nullopt : std::optional(in.type()));
    views.push_back(in.view());
  }
  RETURN_IF_ERROR(InferWithFormat(&call), "while making an input of the example");
  const bool opaque = call.Out(e.forward_output).dtype == DType::kOpaque;
  ASSIGN_OR_RETURN(const KernelRow* row,
                   tables.kernels.Select(call, DeviceKind::kCpu, opaque ? impl : "reference"));
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, RunKernel(*row, call, views));
  return ForwardResult{std::move(outputs[static_cast<size_t>(e.forward_output)]),
                       call.Out(e.forward_output)};
}

absl::StatusOr<DrawnCall> DrawCall(const SuiteTables& tables, const OpDef& op,
                                   const Example& example, const DrawOptions& options) {
  DrawnCall drawn;
  drawn.call = {.op = &op, .attrs = example.attrs};
  if (drawn.call.attrs.empty()) drawn.call.attrs = AnyStruct::Create(*op.attrs);
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& e = example.inputs[i];
    if (e.absent || e.draw == Draw::kForward) {
      drawn.inputs.emplace_back();
      continue;
    }
    TensorType type = TypeFor(e, options);
    SetFormat(&type, options.format);
    drawn.inputs.emplace_back(type);
    SetValues(drawn.inputs.back().view(), DrawValues(e, KeyOf(fmt::format("{} {}", op.name, i))));
  }
  for (const HostTensor& in : drawn.inputs) {
    drawn.call.inputs.push_back(in.data() == nullptr ? std::nullopt : std::optional(in.type()));
  }
  // In order, so that one may use another before it.
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& e = example.inputs[i];
    if (e.draw != Draw::kForward || e.absent) continue;
    ASSIGN_OR_RETURN(ForwardResult forward, ForwardValue(tables, e, drawn.inputs, options.impl));
    drawn.inputs[i] = std::move(forward.value);
    drawn.call.inputs[i] = forward.type;
  }
  RETURN_IF_ERROR(InferWithFormat(&drawn.call));
  return drawn;
}

absl::StatusOr<OpCall> CallOfExample(const OpDef& op, const Example& example, DType dtype) {
  OpCall call{.op = &op, .attrs = example.attrs};
  if (call.attrs.empty()) call.attrs = AnyStruct::Create(*op.attrs);
  for (const ExampleInput& e : example.inputs) {
    const bool drawn = !e.absent && e.draw != Draw::kForward;
    call.inputs.push_back(drawn ? std::optional(TypeFor(e, {.dtype = dtype})) : std::nullopt);
  }
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& e = example.inputs[i];
    if (e.absent || e.draw != Draw::kForward) continue;
    OpCall forward{.op = e.forward, .attrs = e.forward_attrs};
    if (forward.attrs.empty()) forward.attrs = AnyStruct::Create(*e.forward->attrs);
    for (const int f : e.forward_inputs) {
      forward.inputs.push_back(call.inputs[static_cast<size_t>(f)]);
    }
    RETURN_IF_ERROR(InferCall(forward), "while making an input of the example");
    call.inputs[i] = forward.Out(e.forward_output);
  }
  RETURN_IF_ERROR(InferCall(call));
  return call;
}

absl::StatusOr<std::vector<HostTensor>> RunReference(const SuiteTables& tables, const OpCall& call,
                                                     std::span<const TensorView> inputs) {
  ASSIGN_OR_RETURN(const KernelRow* row,
                   tables.kernels.Select(call, DeviceKind::kCpu, "reference"));
  return RunKernel(*row, call, inputs);
}

absl::Status RunGraph(const SuiteTables& tables, const Graph& graph,
                      std::vector<HostTensor>* values) {
  CHECK_EQ(values->size(), graph.values().size());
  for (const Node& node : graph.nodes()) {
    std::vector<TensorView> inputs;
    for (const ValueId v : node.inputs) {
      inputs.push_back(v == kNoValue ? TensorView{} : (*values)[static_cast<size_t>(v)].view());
    }
    ASSIGN_OR_RETURN(std::vector<HostTensor> outputs,
                     RunReference(tables, CallOf(graph, node), inputs));
    for (size_t o = 0; o < outputs.size(); ++o) {
      (*values)[static_cast<size_t>(node.outputs[o])] = std::move(outputs[o]);
    }
  }
  return absl::OkStatus();
}

}  // namespace capstan
