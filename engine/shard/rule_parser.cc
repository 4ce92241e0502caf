#include "engine/shard/rule_parser.h"

#include "engine/base/status.h"

namespace capstan {
namespace {

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsWord(char c) { return IsLetter(c) || (c >= '0' && c <= '9') || c == '_'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  absl::StatusOr<RuleText> Rule() {
    RuleText rule;
    if (!AtArrow()) {
      ASSIGN_OR_RETURN(rule.inputs, Args());
    }
    if (!AtArrow()) return Expected("'->'");
    rest_.remove_prefix(2);
    ASSIGN_OR_RETURN(rule.outputs, Args());
    if (Take('|')) {
      ASSIGN_OR_RETURN(rule.bindings, Bindings());
    }
    if (Next() != 0) return Expected("the end");
    return rule;
  }

 private:
  absl::Status Expected(const char* what) {
    Next();
    return InvalidArgument("expected {} at '{}'", what, std::string(rest_));
  }

  // The next character that is no blank; 0 at the end.
  char Next() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool Take(char c) {
    if (Next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool AtArrow() {
    Next();
    return rest_.substr(0, 2) == "->";
  }
  // A mark stands right behind its name.
  char TakeMark() {
    if (rest_.empty() || (rest_[0] != '!' && rest_[0] != '~')) return 0;
    const char mark = rest_[0];
    rest_.remove_prefix(1);
    return mark;
  }

  absl::StatusOr<std::string> Name() {
    if (!IsLetter(Next())) return Expected("a name");
    size_t end = 0;
    while (end < rest_.size() && IsWord(rest_[end])) ++end;
    std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return name;
  }

  absl::StatusOr<std::vector<ArgText>> Args() {
    std::vector<ArgText> args;
    do {
      ASSIGN_OR_RETURN(ArgText arg, Arg());
      args.push_back(std::move(arg));
    } while (Take(','));
    return args;
  }

  absl::StatusOr<ArgText> Arg() {
    if (Take('.')) return ArgText{};
    if (Take('_')) return ArgText{.kind = ArgText::Kind::kAbsent};
    if (Take('?')) return ArgText{.kind = ArgText::Kind::kOpaque};
    ArgText arg;
    ASSIGN_OR_RETURN(arg.dims, Dims());
    if (arg.dims.empty()) return Expected("a dimension");
    return arg;
  }

  absl::StatusOr<std::vector<DimText>> Dims() {
    std::vector<DimText> dims;
    while (IsLetter(Next()) || Next() == '(' || Next() == '1') {
      ASSIGN_OR_RETURN(DimText dim, Dim());
      dims.push_back(std::move(dim));
    }
    return dims;
  }

  absl::StatusOr<DimText> Dim() {
    DimText dim;
    if (Take('1')) return dim;
    if (Take('(')) {
      while (!Take(')')) {
        if (Take('1')) continue;
        if (!IsLetter(Next())) return Expected("')'");
        ASSIGN_OR_RETURN(FactorText factor, OneFactor());
        dim.factors.push_back(std::move(factor));
      }
      return dim;
    }
    ASSIGN_OR_RETURN(FactorText factor, OneFactor());
    if (!rest_.empty() && rest_[0] == '*') {
      rest_.remove_prefix(1);
      dim.any = true;
      if (const char mark = TakeMark(); mark != 0) factor.mark = mark;
    }
    dim.factors.push_back(std::move(factor));
    return dim;
  }

  absl::StatusOr<FactorText> OneFactor() {
    FactorText factor;
    ASSIGN_OR_RETURN(factor.name, Name());
    factor.mark = TakeMark();
    return factor;
  }

  absl::StatusOr<std::vector<BindingText>> Bindings() {
    std::vector<BindingText> bindings;
    do {
      BindingText binding;
      ASSIGN_OR_RETURN(binding.attr, Name());
      if (!Take('=')) return Expected("'='");
      if (Take('[')) {
        binding.list = true;
        ASSIGN_OR_RETURN(binding.dims, Dims());
        if (!Take(']')) return Expected("']'");
      } else {
        ASSIGN_OR_RETURN(DimText dim, Dim());
        binding.dims = {std::move(dim)};
      }
      bindings.push_back(std::move(binding));
      Take(',');
    } while (Next() != 0);
    return bindings;
  }

  std::string_view rest_;
};

}  // namespace

absl::StatusOr<RuleText> ParseRule(std::string_view text) {
  auto rule = Parser(text).Rule();
  if (!rule.ok()) return Annotate(rule.status(), "while reading the rule '{}'", std::string(text));
  return rule;
}

}  // namespace capstan
