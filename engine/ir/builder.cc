#include "engine/ir/builder.h"

#include <algorithm>

#include "engine/base/status.h"

namespace capstan {

void Builder::Fail(absl::Status status) {
  CHECK(!status.ok()) << "Fail needs an error";
  if (!status_.ok()) return;
  status_ = scope_.empty() ? status : Annotate(status, "while building '{}'", scope_);
}

Builder::ScopeGuard Builder::Enter(std::string_view name) {
  const size_t length = scope_.size();
  if (!scope_.empty()) scope_ += '/';
  scope_ += name;
  return ScopeGuard(this, length);
}

std::string Builder::NewStream() {
  std::string stream = scope_;
  for (int i = 1; !streams_.insert(stream).second; ++i) stream = scope_ + "#" + std::to_string(i);
  return stream;
}

std::string Builder::QualifiedName(std::string_view name) const {
  std::string full = scope_;
  std::replace(full.begin(), full.end(), '/', '.');
  if (!full.empty()) full += '.';
  return full.append(name);
}

ValueId Builder::Data(std::string_view name, const TensorType& type) {
  CHECK(names_.emplace(name).second) << "two inputs are named " << name;
  return graph_->AddInput({.kind = InputKind::kData, .name = std::string(name)}, type);
}

ValueId Builder::Param(std::string_view name, Shape shape, Role role, Init init) {
  std::string full = QualifiedName(name);
  CHECK(names_.insert(full).second) << "two parameters are named " << full;
  return graph_->AddInput(
      {.kind = InputKind::kParam, .name = std::move(full), .role = role, .init = init},
      {dtype_, shape});
}

ValueId Builder::State(std::string_view name, const TensorType& type, Init init) {
  std::string full = QualifiedName(name);
  CHECK(names_.insert(full).second) << "two states are named " << full;
  return graph_->AddInput({.kind = InputKind::kState, .name = std::move(full), .init = init}, type);
}

ValueId Builder::Full(Shape shape, double value, DType dtype) {
  const OpDef& fill = ops_->Get("fill");
  // `fill` belongs to the ops; its attributes are known here by text only.
  std::string text = std::string("{dtype=") + NameOf(dtype) + ", shape=[";
  for (int i = 0; i < shape.ndim(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  text += "], value=" + PrintValue(TypeOf<double>(), &value) + "}";
  return Add1(fill, AttrsFromText(fill, text), {});
}

std::vector<ValueId> Builder::Add(const OpDef& op, AnyStruct attrs, std::vector<ValueId> inputs) {
  const std::vector<ValueId> failed(static_cast<size_t>(op.outputs.size()), kNoValue);
  if (!status_.ok()) return failed;
  if (attrs.empty()) attrs = AnyStruct::Create(*op.attrs);
  // Trailing absent inputs are not written.
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  OpCall call{.op = &op, .attrs = attrs};
  for (const ValueId v : inputs) {
    call.inputs.push_back(v == kNoValue ? std::nullopt : std::optional(graph_->type(v)));
  }
  if (const absl::Status status = InferCall(call); !status.ok()) {
    Fail(status);
    return failed;
  }
  const NodeId id =
      graph_->AddNode(op, std::move(attrs), std::move(inputs), call.outputs, scope_, origin_);
  return graph_->node(id).outputs;
}

ValueId Builder::Add1(const OpDef& op, AnyStruct attrs, std::vector<ValueId> inputs) {
  CHECK_EQ(op.outputs.size(), 1) << op.name;
  return Add(op, std::move(attrs), std::move(inputs))[0];
}

ValueId Builder::Add1(std::string_view op, std::vector<ValueId> inputs, AnyStruct attrs) {
  return Add1(ops_->Get(op), std::move(attrs), std::move(inputs));
}

}  // namespace capstan
