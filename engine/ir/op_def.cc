#include "engine/ir/op_def.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"

namespace capstan {
namespace {

const char* NameOf(DTypeClass c) {
  switch (c) {
    case DTypeClass::kFloat:
      return "a float type";
    case DTypeClass::kInteger:
      return "an integer type";
    case DTypeClass::kAny:
      return "any type";
    case DTypeClass::kOpaque:
      return "opaque bytes";
  }
  return "?";
}

bool Accepts(DTypeClass c, DType d) {
  switch (c) {
    case DTypeClass::kFloat:
      return IsFloat(d);
    case DTypeClass::kInteger:
      return IsInteger(d);
    case DTypeClass::kAny:
      return d != DType::kOpaque;
    case DTypeClass::kOpaque:
      return d == DType::kOpaque;
  }
  return false;
}

// The definition of input `i`, counting a variadic last one for all that follow.
const ArgDef& InputDef(const OpDef& op, int i) {
  return op.inputs[std::min(i, op.inputs.size() - 1)];
}

absl::Status CheckInputs(const OpCall& call) {
  const OpDef& op = *call.op;
  const int given = static_cast<int>(call.inputs.size());
  const int declared = op.inputs.size();
  const bool variadic = declared > 0 && op.inputs[declared - 1].variadic;
  if (given > declared && !variadic) {
    return InvalidArgument("takes {} inputs, got {}", declared, given);
  }
  for (int i = 0; i < std::max(given, declared); ++i) {
    const ArgDef& def = InputDef(op, i);
    if (!call.Has(i)) {
      if (def.optional || def.variadic) continue;
      return InvalidArgument("input {} ('{}') is missing", i, def.name);
    }
    if (!Accepts(def.dtypes, call.In(i).dtype)) {
      return InvalidArgument("input {} ('{}') must have {}, got {}", i, def.name,
                             NameOf(def.dtypes), capstan::NameOf(call.In(i).dtype));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void internal::NoGrad(GradContext&) {}

DType OpCall::MainDType() const {
  for (const auto& in : inputs) {
    if (in.has_value() && IsFloat(in->dtype)) return in->dtype;
  }
  if (!outputs.empty()) return outputs[0].dtype;
  for (const auto& in : inputs) {
    if (in.has_value()) return in->dtype;
  }
  return DType::kF32;
}

std::string OpCall::ToString() const {
  std::string text = std::string(op->name) + "(";
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i > 0) text += ", ";
    text += inputs[i].has_value() ? inputs[i]->ToString() : "_";
  }
  text += ")";
  if (!attrs.empty()) {
    const std::string a = PrintValue(*attrs.type(), attrs.data());
    if (a != "{}") text += a;
  }
  return text;
}

std::string JoinDims(std::span<const std::string> dims) {
  if (dims.empty()) return ".";
  return fmt::format("{}", fmt::join(dims, " "));
}

OpTable::OpTable(std::span<const OpDef* const> rows) : rows_(rows.begin(), rows.end()) {
  std::sort(rows_.begin(), rows_.end(), [](const OpDef* a, const OpDef* b) {
    return std::string_view(a->name) < std::string_view(b->name);
  });
  for (const OpDef* op : rows_) {
    CHECK(by_name_.emplace(op->name, op).second) << "two operators are named " << op->name;
  }
}

const OpDef* OpTable::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const OpDef& OpTable::Get(std::string_view name) const {
  const OpDef* op = Find(name);
  CHECK(op != nullptr) << "no operator '" << name << "' in the table";
  return *op;
}

std::vector<std::string> OpTable::Names() const {
  std::vector<std::string> names;
  for (const OpDef* op : rows_) names.emplace_back(op->name);
  return names;
}

AnyStruct AttrsFromText(const OpDef& op, std::string_view text) {
  AnyStruct attrs = AnyStruct::Create(*op.attrs);
  CHECK_OK(ParseValue(*op.attrs, &text, attrs.mutable_data()));
  CHECK(text.empty()) << "left over after the attributes of " << op.name << ": " << text;
  return attrs;
}

absl::Status InferCall(OpCall& call) {
  CHECK(call.op != nullptr && !call.attrs.empty() && call.attrs.type() == call.op->attrs)
      << "attributes of another operator";
  absl::Status status = CheckInputs(call);
  if (status.ok()) {
    call.outputs.clear();
    status = call.op->infer(call);
  }
  if (!status.ok()) {
    return InvalidArgument("{}: {}", call.ToString(), MessageOf(status));
  }
  CHECK_EQ(static_cast<int>(call.outputs.size()), call.op->outputs.size())
      << "infer of " << call.op->name;
  return absl::OkStatus();
}

absl::Status InferLikeInput0(OpCall& call) {
  for (int i = 0; i < call.op->outputs.size(); ++i) {
    TensorType type = call.In(0);
    type.format = MemoryFormat::kPlain;
    call.outputs.push_back(type);
  }
  return absl::OkStatus();
}

double ArgumentBytes(const OpCall& call) {
  double bytes = 0;
  for (const auto& in : call.inputs) {
    if (in.has_value()) bytes += static_cast<double>(in->bytes());
  }
  for (const TensorType& out : call.outputs) bytes += static_cast<double>(out.bytes());
  return bytes;
}

ExampleInput FloatInput(Shape shape, Draw draw) {
  return {.type = {DType::kF32, shape}, .draw = draw};
}

ExampleInput IndexInput(Shape shape, int64_t limit, DType dtype) {
  return {.type = {dtype, shape}, .draw = Draw::kIndex, .limit = limit};
}

ExampleInput ValuesInput(TensorType type, std::vector<double> values) {
  return {.type = type, .draw = Draw::kValues, .values = std::move(values)};
}

ExampleInput AbsentInput() { return {.absent = true}; }

ExampleInput ForwardInput(const OpDef& op, AnyStruct attrs, std::vector<int> inputs, int output) {
  return {.draw = Draw::kForward,
          .forward = &op,
          .forward_attrs = std::move(attrs),
          .forward_inputs = std::move(inputs),
          .forward_output = output};
}

}  // namespace capstan
