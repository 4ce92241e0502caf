#include "tools/data/arguments.h"

#include <charconv>

#include "engine/base/status.h"

namespace capstan {

absl::StatusOr<int64_t> Arguments::Number(std::string_view name, int64_t min) const {
  const std::string& text = options.find(name)->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < min) {
    return InvalidArgument("--{}={}: wanted a whole number of at least {}", name, text, min);
  }
  return value;
}

absl::StatusOr<Arguments> ParseArguments(
    int argc, char** argv, const std::map<std::string, std::string, std::less<>>& defaults) {
  Arguments arguments{.output = "", .options = defaults};
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (!text.starts_with("--")) {
      if (!arguments.output.empty()) return InvalidArgument("unexpected argument '{}'", text);
      arguments.output = text;
      continue;
    }
    const size_t equals = text.find('=');
    const auto option = arguments.options.find(text.substr(2, equals - 2));
    if (equals == std::string_view::npos || option == arguments.options.end()) {
      return InvalidArgument("unknown option '{}'", text);
    }
    option->second = text.substr(equals + 1);
  }
  if (arguments.output.empty()) return InvalidArgument("the output folder is missing");
  return arguments;
}

}  // namespace capstan
