#include "engine/data/class_names.h"

#include <charconv>
#include <map>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/data/file.h"
#include "engine/data/text_lines.h"

namespace capstan {

absl::StatusOr<std::vector<std::string>> ReadClassNames(const std::string& path) {
  std::string text;
  RETURN_IF_ERROR(ReadFile(path, &text), "while reading the class names");
  std::map<int64_t, std::string> names;
  absl::Status status;
  ForEachLine(text, [&](int64_t number, std::string_view line) {
    line = Trim(line);
    if (line.empty() || !status.ok()) return;
    int64_t id = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    const std::string_view name = line.substr(static_cast<size_t>(end - line.data()));
    if (error != std::errc() || id < 0 || (!name.empty() && name[0] != ' ' && name[0] != '\t')) {
      status =
          InvalidArgument("{}:{}: expected a class id and a name, found '{}'", path, number, line);
    } else if (!names.emplace(id, Trim(name)).second) {
      status = InvalidArgument("{}:{}: class id {} has a name already", path, number, id);
    }
  });
  RETURN_IF_ERROR(status);
  if (names.empty()) return InvalidArgument("{}: no class name in the file", path);
  std::vector<std::string> by_id;
  for (auto& [id, name] : names) {
    if (id != static_cast<int64_t>(by_id.size())) {
      return InvalidArgument("{}: class id {} has no name, but {} has", path, by_id.size(), id);
    }
    by_id.push_back(std::move(name));
  }
  return by_id;
}

}  // namespace capstan
