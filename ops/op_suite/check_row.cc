#include <fmt/format.h>

#include <cmath>

#include "engine/base/status.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

bool IsEmpty(const char* text) { return text == nullptr || *text == '\0'; }

absl::Status CheckNames(const OpDef& op) {
  if (IsEmpty(op.name)) return InvalidArgument("the row has no name");
  if (IsEmpty(op.doc)) return InvalidArgument("the row has no doc");
  for (int i = 0; i < op.inputs.size(); ++i) {
    if (IsEmpty(op.inputs[i].name)) return InvalidArgument("input {} has no name", i);
    if (op.inputs[i].variadic && i + 1 != op.inputs.size()) {
      return InvalidArgument("input '{}' is variadic but not the last", op.inputs[i].name);
    }
  }
  for (int o = 0; o < op.outputs.size(); ++o) {
    if (IsEmpty(op.outputs[o].name)) return InvalidArgument("output {} has no name", o);
  }
  if (op.attrs == nullptr || op.attrs->kind != Kind::kStruct) {
    return InvalidArgument("the row has no attribute struct; NoAttrs is one");
  }
  for (const FieldInfo& field : op.attrs->fields()) {
    if (IsEmpty(field.doc)) return InvalidArgument("attribute '{}' has no doc", field.name);
  }
  return absl::OkStatus();
}

absl::Status CheckFunctions(const OpDef& op) {
  if (op.infer == nullptr) return InvalidArgument("the row has no infer");
  if (op.grad == nullptr) return InvalidArgument("the row has no grad; without one it is kNoGrad");
  if (op.cost == nullptr) return InvalidArgument("the row has no cost");
  if ((op.axes.text == nullptr) == (op.axes.fn == nullptr)) {
    return InvalidArgument("axes must be a text or a function");
  }
  if (op.examples == nullptr) return InvalidArgument("the row has no examples");
  for (const InPlacePair& pair : op.traits.in_place) {
    if (pair.output < 0 || pair.output >= op.outputs.size() || pair.input < 0 ||
        pair.input >= op.inputs.size()) {
      return InvalidArgument("in_place {{{}, {}}} names no arguments", pair.output, pair.input);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckExample(const SuiteTables& tables, const OpDef& op, const Example& example) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    ASSIGN_OR_RETURN(const OpCall call, CallOfExample(op, example, dtype));
    RETURN_IF_ERROR(tables.kernels.Select(call, DeviceKind::kCpu, "reference").status());
    const Cost cost = op.cost(call);
    if (!(cost.flops >= 0 && std::isfinite(cost.flops) && cost.bytes > 0 &&
          std::isfinite(cost.bytes))) {
      return InvalidArgument("cost of {}: {} FLOPs, {} bytes", call.ToString(), cost.flops,
                             cost.bytes);
    }
  }
  return absl::OkStatus();
}

// Another value of the type, far from any default.
void Change(const TypeInfo& type, void* value) {
  switch (type.kind) {
    case Kind::kBool:
      *static_cast<bool*>(value) = !*static_cast<bool*>(value);
      break;
    case Kind::kInt:
      *static_cast<int64_t*>(value) += 3;
      break;
    case Kind::kFloat:
      *static_cast<double*>(value) =
          std::isfinite(*static_cast<double*>(value)) ? *static_cast<double*>(value) / 3 + 0.1 : 7;
      break;
    case Kind::kString:
      *static_cast<std::string*>(value) += "a \"b\" \\ {c=1}, d";
      break;
    case Kind::kEnum:
      type.enum_set(value,
                    (type.enum_get(value) + 1) % static_cast<int64_t>(type.enum_names().size()));
      break;
    case Kind::kList: {
      const size_t size = type.size(value);
      type.resize(value, size + 2);
      for (size_t i = 0; i < size + 2; ++i) Change(*type.element, type.at(value, i));
      break;
    }
    case Kind::kOptional:
      Change(*type.element, type.emplace(value));
      break;
    case Kind::kStruct:
      for (const FieldInfo& field : type.fields()) Change(*field.type, field.get(value));
      break;
    case Kind::kSection:
      break;
  }
}

absl::Status CheckAttrText(const OpDef& op) {
  AnyStruct attrs = AnyStruct::Create(*op.attrs);
  Change(*op.attrs, attrs.mutable_data());
  const std::string text = PrintValue(*op.attrs, attrs.data());
  for (const FieldInfo& field : op.attrs->fields()) {
    if (text.find(std::string(field.name) + "=") == std::string::npos) {
      return InvalidArgument("attribute '{}' is not printed in {}", field.name, text);
    }
  }
  AnyStruct again = AnyStruct::Create(*op.attrs);
  std::string_view rest = text;
  RETURN_IF_ERROR(ParseValue(*op.attrs, &rest, again.mutable_data()), "while parsing {}", text);
  if (rest.empty() && again == attrs) return absl::OkStatus();
  return InvalidArgument("attributes printed {} and parsed {}", text,
                         PrintValue(*op.attrs, again.data()));
}

}  // namespace

absl::Status CheckRow(const SuiteTables& tables, const OpDef& op) {
  RETURN_IF_ERROR(CheckNames(op));
  RETURN_IF_ERROR(CheckFunctions(op));
  RETURN_IF_ERROR(CheckAttrText(op));
  const std::vector<Example> examples = op.examples();
  if (examples.size() < 2) {
    return InvalidArgument("the row has {} examples, 2 at least are needed", examples.size());
  }
  bool any = false;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].error != nullptr) continue;
    any = true;
    RETURN_IF_ERROR(CheckExample(tables, op, examples[i]), "while looking at example {}", i);
  }
  if (!any) return InvalidArgument("every example of the row must fail");
  return absl::OkStatus();
}

}  // namespace capstan
