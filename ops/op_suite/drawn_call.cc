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

bool IsNarrow(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

TensorType TypeFor(const OpDef& op, size_t input, const ExampleInput& e, DType dtype) {
  TensorType type = e.type;
  const uint32_t narrow_in = op.traits.narrow_in;
  if (IsNarrow(dtype) && narrow_in != 0 && (narrow_in >> input & 1u) == 0) return type;
  if (type.dtype == DType::kF32) type.dtype = dtype;
  return type;
}

OpCall EmptyCall(const OpDef& op, const AnyStruct& attrs) {
  return {.op = &op, .attrs = attrs.empty() ? AnyStruct::Create(*op.attrs) : attrs};
}

bool IsDrawn(const ExampleInput& e) { return !e.absent && e.draw != Draw::kForward; }

// The inputs of the example that are the row's; further ones feed forward operators. Where no
// forward operator wants them, they are the row's too: too many of them is infer's to report.
size_t InputsOfRow(const OpDef& op, const Example& example) {
  const int declared = op.inputs.size();
  const bool variadic = declared > 0 && op.inputs[declared - 1].variadic;
  const bool any_forward = std::any_of(example.inputs.begin(), example.inputs.end(),
                                       [](const ExampleInput& e) { return e.forward != nullptr; });
  if (variadic || !any_forward) return example.inputs.size();
  return std::min(example.inputs.size(), static_cast<size_t>(declared));
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

absl::StatusOr<ForwardCall> ForwardCallOf(const ExampleInput& e, const DrawnCall& drawn) {
  ForwardCall forward{.call = EmptyCall(*e.forward, e.forward_attrs)};
  for (const int i : e.forward_inputs) {
    const HostTensor& in = drawn.InputOfExample(i);
    forward.call.inputs.push_back(in.data() == nullptr ? std::nullopt : std::optional(in.type()));
    forward.inputs.push_back(in.view());
  }
  RETURN_IF_ERROR(InferWithFormat(&forward.call), "while making an input of the example");
  return forward;
}

absl::StatusOr<HostTensor> ForwardValue(const SuiteTables& tables, const ExampleInput& e,
                                        const ForwardCall& forward, std::string_view impl,
                                        Device* device) {
  const TensorType& type = forward.call.Out(e.forward_output);
  if (type.dtype != DType::kOpaque || impl == "reference") {
    ASSIGN_OR_RETURN(std::vector<HostTensor> outputs,
                     RunReference(tables, forward.call, forward.inputs));
    HostTensor& value = outputs[static_cast<size_t>(e.forward_output)];
    if (value.type().dtype == type.dtype) return std::move(value);
    return Converted(value.view(), type);
  }
  const DeviceKind kind = device == nullptr ? DeviceKind::kCpu : device->kind();
  ASSIGN_OR_RETURN(const KernelRow* row, tables.kernels.Select(forward.call, kind, impl));
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs,
                   RunKernel(*row, forward.call, forward.inputs, {.device = device}));
  return std::move(outputs[static_cast<size_t>(e.forward_output)]);
}

absl::StatusOr<DrawnCall> DrawCall(const SuiteTables& tables, const OpDef& op,
                                   const Example& example, const DrawOptions& options) {
  DrawnCall drawn{.call = EmptyCall(op, example.attrs)};
  const size_t taken = InputsOfRow(op, example);
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& e = example.inputs[i];
    std::vector<HostTensor>& to = i < taken ? drawn.inputs : drawn.extra;
    to.emplace_back();
    if (IsDrawn(e)) {
      TensorType type = TypeFor(op, i, e, options.dtype);
      SetFormat(&type, options.format);
      to.back() = HostTensor(type);
      SetValues(to.back().view(), DrawValues(e, KeyOf(fmt::format("{} {}", op.name, i))));
    }
    if (i >= taken) continue;
    drawn.call.inputs.push_back(IsDrawn(e) ? std::optional(to.back().type()) : std::nullopt);
  }
  // In order, so that one may use another before it.
  for (size_t i = 0; i < taken; ++i) {
    const ExampleInput& e = example.inputs[i];
    if (e.draw != Draw::kForward || e.absent) continue;
    ASSIGN_OR_RETURN(const ForwardCall forward, ForwardCallOf(e, drawn));
    ASSIGN_OR_RETURN(drawn.inputs[i],
                     ForwardValue(tables, e, forward, options.impl, options.device));
    drawn.call.inputs[i] = forward.call.Out(e.forward_output);
  }
  RETURN_IF_ERROR(InferWithFormat(&drawn.call));
  return drawn;
}

absl::StatusOr<OpCall> CallOfExample(const OpDef& op, const Example& example, DType dtype) {
  std::vector<std::optional<TensorType>> types;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& e = example.inputs[i];
    types.push_back(IsDrawn(e) ? std::optional(TypeFor(op, i, e, dtype)) : std::nullopt);
  }
  const size_t taken = InputsOfRow(op, example);
  for (size_t i = 0; i < taken; ++i) {
    const ExampleInput& e = example.inputs[i];
    if (e.absent || e.draw != Draw::kForward) continue;
    OpCall forward = EmptyCall(*e.forward, e.forward_attrs);
    for (const int f : e.forward_inputs) forward.inputs.push_back(types[static_cast<size_t>(f)]);
    RETURN_IF_ERROR(InferCall(forward), "while making an input of the example");
    types[i] = forward.Out(e.forward_output);
  }
  OpCall call = EmptyCall(op, example.attrs);
  call.inputs.assign(types.begin(), types.begin() + static_cast<int64_t>(taken));
  RETURN_IF_ERROR(InferCall(call));
  return call;
}

absl::StatusOr<std::vector<HostTensor>> RunReference(const SuiteTables& tables, const OpCall& call,
                                                     std::span<const TensorView> inputs) {
  const auto row = tables.kernels.Select(call, DeviceKind::kCpu, "reference");
  if (row.ok()) return RunKernel(**row, call, inputs);
  OpCall wide = call;
  std::vector<HostTensor> wide_inputs(inputs.size());
  std::vector<TensorView> views(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data == nullptr || !IsNarrow(inputs[i].type.dtype)) continue;
    wide.inputs[i]->dtype = DType::kF32;
    wide_inputs[i] = Converted(inputs[i], *wide.inputs[i]);
    views[i] = wide_inputs[i].view();
  }
  for (TensorType& out : wide.outputs) {
    if (IsNarrow(out.dtype)) out.dtype = DType::kF32;
  }
  ASSIGN_OR_RETURN(const KernelRow* wide_row,
                   tables.kernels.Select(wide, DeviceKind::kCpu, "reference"));
  return RunKernel(*wide_row, wide, views);
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
