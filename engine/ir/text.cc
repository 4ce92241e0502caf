#include "engine/ir/text.h"

#include <charconv>
#include <map>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

std::string NameOfValue(ValueId id) { return id == kNoValue ? "_" : "%" + std::to_string(id); }

std::string JoinValues(const std::vector<ValueId>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) text += (i > 0 ? ", " : "") + NameOfValue(ids[i]);
  return text;
}

const char* NameOf(InputKind kind) {
  switch (kind) {
    case InputKind::kData:
      return "data";
    case InputKind::kParam:
      return "param";
    case InputKind::kState:
      return "state";
  }
  return "?";
}

// Reads one graph, line by line.
class GraphParser {
 public:
  GraphParser(std::string_view* text, const OpTable& ops, std::string_view file)
      : text_(text), ops_(ops), file_(file) {}

  absl::StatusOr<Graph> Parse() {
    RETURN_IF_ERROR(NextLine());
    if (!Take("graph ") || line_.size() < 3 || line_.substr(line_.size() - 2) != " {") {
      return Error("expected `graph NAME {{`, found `{}`", line_);
    }
    graph_.name = std::string(line_.substr(0, line_.size() - 2));
    while (true) {
      RETURN_IF_ERROR(NextLine());
      if (line_ == "}") return std::move(graph_);
      RETURN_IF_ERROR(ParseLine());
    }
  }

 private:
  template <typename... Args>
  absl::Status Error(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidArgument("{}:{}: {}", file_, number_,
                           fmt::format(format, std::forward<Args>(args)...));
  }

  absl::Status NextLine() {
    do {
      if (text_->empty()) {
        ++number_;
        return Error("the graph ends before its closing `}}`");
      }
      ++number_;
      const size_t end = text_->find('\n');
      line_ = Trim(text_->substr(0, end));
      text_->remove_prefix(end == std::string_view::npos ? text_->size() : end + 1);
    } while (line_.empty());
    return absl::OkStatus();
  }

  bool Take(std::string_view token) {
    if (line_.substr(0, token.size()) != token) return false;
    line_.remove_prefix(token.size());
    return true;
  }

  absl::Status Expect(std::string_view token) {
    return Take(token) ? absl::OkStatus() : Error("expected `{}` before `{}`", token, line_);
  }

  std::string_view TakeUntil(std::string_view stops) {
    const size_t end = std::min(line_.find_first_of(stops), line_.size());
    const std::string_view word = line_.substr(0, end);
    line_.remove_prefix(end);
    return word;
  }

  // `%12` of the text, before translation to an id of this graph.
  absl::StatusOr<int64_t> ParseNumber() {
    RETURN_IF_ERROR(Expect("%"));
    int64_t n = 0;
    const auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), n);
    if (error != std::errc()) return Error("expected a value number before `{}`", line_);
    line_.remove_prefix(static_cast<size_t>(end - line_.data()));
    return n;
  }

  absl::StatusOr<ValueId> ParseUse() {
    if (Take("_")) return kNoValue;
    ASSIGN_OR_RETURN(const int64_t n, ParseNumber());
    const auto it = ids_.find(n);
    if (it == ids_.end()) return Error("%{} is used before it is made", n);
    return it->second;
  }

  absl::StatusOr<TensorType> ParseType() {
    TensorType type;
    RETURN_IF_ERROR(ParseTensorType(&line_, &type), "while reading line {} of {}", number_, file_);
    return type;
  }

  absl::Status Define(int64_t number, ValueId id) {
    return ids_.emplace(number, id).second ? absl::OkStatus() : Error("%{} is made twice", number);
  }

  absl::Status ParseLine() {
    if (Take("update ")) {
      ASSIGN_OR_RETURN(const ValueId state, ParseUse());
      RETURN_IF_ERROR(Expect(" = "));
      ASSIGN_OR_RETURN(const ValueId value, ParseUse());
      graph_.AddUpdate(state, value);
      return AtEnd();
    }
    if (Take("output ")) {
      const std::string name(TakeUntil(" "));
      RETURN_IF_ERROR(Expect(" = "));
      ASSIGN_OR_RETURN(const ValueId value, ParseUse());
      if (graph_.FindOutput(name) != kNoValue) return Error("two outputs are named '{}'", name);
      graph_.AddOutput(name, value);
      return AtEnd();
    }
    std::vector<int64_t> made;
    do {
      ASSIGN_OR_RETURN(const int64_t n, ParseNumber());
      made.push_back(n);
    } while (Take(", "));
    RETURN_IF_ERROR(Expect(" = "));
    for (const InputKind kind : {InputKind::kData, InputKind::kParam, InputKind::kState}) {
      if (Take(std::string(NameOf(kind)) + " ")) return ParseInput(kind, made[0]);
    }
    return ParseNode(made);
  }

  absl::Status ParseInput(InputKind kind, int64_t number) {
    GraphInput input{.kind = kind, .name = std::string(TakeUntil(" "))};
    RETURN_IF_ERROR(Expect(" : "));
    ASSIGN_OR_RETURN(const TensorType type, ParseType());
    if (Take(" role=")) {
      RETURN_IF_ERROR(ParseValue(TypeOf<Role>(), &line_, &input.role),
                      "while reading line {} of {}", number_, file_);
    }
    if (Take(" init=")) {
      RETURN_IF_ERROR(ParseValue(TypeOf<Init>(), &line_, &input.init),
                      "while reading line {} of {}", number_, file_);
    }
    RETURN_IF_ERROR(Define(number, graph_.AddInput(std::move(input), type)));
    return AtEnd();
  }

  absl::Status ParseNode(const std::vector<int64_t>& made) {
    const std::string name(TakeUntil("("));
    const OpDef* op = ops_.Find(name);
    if (op == nullptr) {
      const std::string nearest = Nearest(name, ops_.Names());
      return Error("unknown operator '{}'{}", name,
                   nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
    }
    RETURN_IF_ERROR(Expect("("));
    std::vector<ValueId> inputs;
    if (!Take(")")) {
      do {
        ASSIGN_OR_RETURN(const ValueId v, ParseUse());
        inputs.push_back(v);
      } while (Take(", "));
      RETURN_IF_ERROR(Expect(")"));
    }
    AnyStruct attrs = AnyStruct::Create(*op->attrs);
    RETURN_IF_ERROR(ParseValue(*op->attrs, &line_, attrs.mutable_data()),
                    "while reading the attributes of '{}' at {}:{}", name, file_, number_);
    RETURN_IF_ERROR(Expect(" : "));
    std::vector<TensorType> types;
    do {
      ASSIGN_OR_RETURN(types.emplace_back(), ParseType());
    } while (Take(", "));
    if (types.size() != made.size()) {
      return Error("{} values but {} types", made.size(), types.size());
    }
    std::string scope, origin;
    if (Take(" @")) scope = std::string(TakeUntil(" "));
    if (Take(" from ")) origin = std::string(TakeUntil(" "));
    const NodeId id = graph_.AddNode(*op, std::move(attrs), std::move(inputs), types,
                                     std::move(scope), std::move(origin));
    for (size_t i = 0; i < made.size(); ++i) {
      RETURN_IF_ERROR(Define(made[i], graph_.node(id).outputs[i]));
    }
    return AtEnd();
  }

  absl::Status AtEnd() const {
    return line_.empty() ? absl::OkStatus() : Error("unexpected `{}`", line_);
  }

  std::string_view* text_;
  const OpTable& ops_;
  std::string_view file_;
  std::string_view line_;
  int number_ = 0;
  Graph graph_;
  std::map<int64_t, ValueId> ids_;
};

}  // namespace

std::string PrintGraph(const Graph& graph) {
  std::string text = "graph " + graph.name + " {\n";
  for (const GraphInput& in : graph.inputs()) {
    text += "  " + NameOfValue(in.value) + " = " + NameOf(in.kind) + " " + in.name + " : " +
            graph.type(in.value).ToString();
    if (in.kind == InputKind::kParam) text += " role=" + PrintValue(TypeOf<Role>(), &in.role);
    if (in.kind != InputKind::kData) text += " init=" + PrintValue(TypeOf<Init>(), &in.init);
    text += "\n";
  }
  for (const Node& n : graph.nodes()) {
    if (n.op == nullptr) continue;
    text += "  " + JoinValues(n.outputs) + " = " + n.op->name + "(" + JoinValues(n.inputs) + ")" +
            PrintValue(*n.attrs.type(), n.attrs.data()) + " : ";
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      text += (i > 0 ? ", " : "") + graph.type(n.outputs[i]).ToString();
    }
    if (!n.scope.empty()) text += " @" + n.scope;
    if (!n.origin.empty()) text += " from " + n.origin;
    text += "\n";
  }
  for (const StateUpdate& u : graph.updates()) {
    text += "  update " + NameOfValue(u.state) + " = " + NameOfValue(u.value) + "\n";
  }
  for (const GraphOutput& o : graph.outputs()) {
    text += "  output " + o.name + " = " + NameOfValue(o.value) + "\n";
  }
  return text + "}\n";
}

absl::StatusOr<Graph> ParseGraph(std::string_view* text, const OpTable& ops,
                                 std::string_view file) {
  return GraphParser(text, ops, file).Parse();
}

}  // namespace capstan
