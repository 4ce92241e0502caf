// The text of a factor rule as a tree; see factor_rule.h for the language and the meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace capstan {

struct FactorText {
  std::string name;
  char mark = 0;  // 0, '!' or '~'
};

struct DimText {
  std::vector<FactorText> factors;  // none: size one
  bool any = false;                 // one factor followed by '*'
};

struct ArgText {
  enum class Kind { kDims, kAbsent, kOpaque };
  Kind kind = Kind::kDims;
  std::vector<DimText> dims;
};

struct BindingText {
  std::string attr;
  bool list = false;
  std::vector<DimText> dims;
};

struct RuleText {
  std::vector<ArgText> inputs, outputs;
  std::vector<BindingText> bindings;
};

// Errors show the place: "expected ')' at 'h w'".
absl::StatusOr<RuleText> ParseRule(std::string_view text);

}  // namespace capstan
