#include "engine/config/scalars.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "engine/base/text.h"
#include "engine/config/lookalike.h"

namespace capstan {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string WithHint(std::string problem, std::string_view text) {
  const std::string hint = SpellingHint(text);
  return hint.empty() ? problem : fmt::format("{}: {}", problem, hint);
}

// What keeps a node from being read as a `what` at all.
std::string NotPlain(const YamlNode& node, std::string_view what) {
  if (node.kind != YamlNode::Kind::kScalar) {
    return fmt::format("expected {}, found {}", what, node.Describe());
  }
  if (node.quoted) {
    return fmt::format("expected {}, found {}; remove the quotes", what, node.Describe());
  }
  return "";
}

bool HasLeadingZero(std::string_view digits) {
  return digits.size() > 1 && digits[0] == '0' && IsDigit(digits[1]);
}

std::string_view WithoutSign(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return text;
}

// from_chars takes '-' but not '+'.
std::string_view WithoutPlus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::string LeadingZero(std::string_view text) {
  return fmt::format("'{}' has a leading zero, which some readers take for octal; remove it", text);
}

std::string ReadOneFloat(std::string_view text, double* out) {
  const std::string_view digits = WithoutSign(text);
  const bool starts =
      !digits.empty() &&
      (IsDigit(digits[0]) || (digits[0] == '.' && digits.size() > 1 && IsDigit(digits[1])));
  const std::string_view body = WithoutPlus(text);
  const auto r = std::from_chars(body.data(), body.data() + body.size(), *out);
  if (!starts || r.ptr != body.data() + body.size()) {
    std::string name(digits.substr(!digits.empty() && digits[0] == '.'));
    for (char& c : name) c = static_cast<char>(c | 32);
    if (name == "inf" || name == "infinity" || name == "nan") {
      return fmt::format("'{}' is not a finite number", text);
    }
    return WithHint(fmt::format("'{}' is not a number", text), text);
  }
  if (HasLeadingZero(digits)) return LeadingZero(text);
  if (r.ec != std::errc()) return fmt::format("'{}' does not fit in a double", text);
  return "";
}

}  // namespace

std::string ReadInt(const YamlNode& node, int64_t* out) {
  if (std::string problem = NotPlain(node, "an integer"); !problem.empty()) return problem;
  const std::string_view text = node.text;
  const std::string_view digits = WithoutSign(text);
  const size_t other = digits.find_first_not_of("0123456789");
  if (digits.empty() || other != std::string_view::npos) {
    double number;
    if (ReadOneFloat(text, &number).empty()) {
      return fmt::format("'{}' is not an integer; integers take no point and no exponent", text);
    }
    return WithHint(fmt::format("'{}' is not an integer", text), text);
  }
  if (HasLeadingZero(digits)) return LeadingZero(text);
  const std::string_view body = WithoutPlus(text);
  const auto r = std::from_chars(body.data(), body.data() + body.size(), *out);
  return r.ec == std::errc() ? "" : fmt::format("'{}' does not fit in 64 bits", text);
}

std::string ReadFloat(const YamlNode& node, double* out) {
  if (std::string problem = NotPlain(node, "a number"); !problem.empty()) return problem;
  const size_t slash = node.text.find('/');
  if (slash == std::string::npos) return ReadOneFloat(node.text, out);
  // `scale: 1.0/255.0`, as image transforms are often written.
  double above = 0, below = 0;
  if (!ReadOneFloat(Trim(node.text.substr(0, slash)), &above).empty() ||
      !ReadOneFloat(Trim(node.text.substr(slash + 1)), &below).empty() ||
      !std::isfinite(above / below)) {
    return fmt::format("'{}' is not a number or a quotient of two", node.text);
  }
  *out = above / below;
  return "";
}

std::string ReadBool(const YamlNode& node, bool* out) {
  if (std::string problem = NotPlain(node, "true or false"); !problem.empty()) return problem;
  *out = node.text == "true" || node.text == "True";
  if (*out || node.text == "false" || node.text == "False") return "";
  return WithHint(fmt::format("'{}' is not a switch; write true or false", node.text), node.text);
}

std::string ReadEnum(const YamlNode& node, std::span<const char* const> names, int64_t* out) {
  const std::vector<std::string> allowed(names.begin(), names.end());
  if (node.kind != YamlNode::Kind::kScalar) {
    return fmt::format("expected one of {}, found {}", fmt::join(allowed, ", "), node.Describe());
  }
  for (size_t i = 0; i < allowed.size(); ++i) {
    if (node.text != allowed[i]) continue;
    *out = static_cast<int64_t>(i);
    return "";
  }
  return NotOneOf(node.text, "allowed", allowed);
}

std::string DescribeBounds(const Bounds& bounds) {
  const bool low = std::isfinite(bounds.min), high = std::isfinite(bounds.max);
  if (low && bounds.min == bounds.max) return fmt::format("must be {}", bounds.min);
  if (low && high && !bounds.open_min) {
    return fmt::format("must be from {} to {}", bounds.min, bounds.max);
  }
  const std::string above = !low              ? ""
                            : bounds.open_min ? fmt::format("greater than {}", bounds.min)
                                              : fmt::format("at least {}", bounds.min);
  const std::string below = !high ? "" : fmt::format("at most {}", bounds.max);
  if (!low && !high) return "";
  return fmt::format("must be {}{}{}", above, low && high ? " and " : "", below);
}

std::string CheckBounds(double value, const std::string& text, const Bounds& bounds) {
  const bool above_min = bounds.open_min ? value > bounds.min : value >= bounds.min;
  if (above_min && value <= bounds.max) return "";
  return fmt::format("{} is out of range; it {}", text, DescribeBounds(bounds));
}

std::string NotOneOf(const std::string& text, const std::string& what,
                     const std::vector<std::string>& allowed) {
  const std::string nearest = Nearest(text, allowed);
  const std::string hint = SpellingHint(text);
  return fmt::format("'{}' is not {}{}{}; {}choose one of {}", text, what, hint.empty() ? "" : ": ",
                     hint, nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest),
                     fmt::join(allowed, ", "));
}

}  // namespace capstan
