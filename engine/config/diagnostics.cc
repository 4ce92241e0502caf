#include "engine/config/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/base/status.h"

namespace capstan {
namespace {

// Beyond this the first lines tell enough.
constexpr size_t kMostShown = 100;

}  // namespace

std::string Position::ToString() const {
  return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column);
}

void Diagnostics::Add(Position at, std::string path, std::string problem) {
  items_.push_back({std::move(at), std::move(path), std::move(problem)});
}

absl::Status Diagnostics::ToStatus() const {
  if (items_.empty()) return absl::OkStatus();
  std::vector<const Item*> order;
  for (const Item& item : items_) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    const auto key = [](const Item* i) {
      return std::tuple(i->at.line == 0, std::string_view(i->at.line == 0 ? "" : i->at.file),
                        i->at.line, i->at.column);
    };
    return key(a) < key(b);
  });
  std::string text;
  for (size_t i = 0; i < std::min(order.size(), kMostShown); ++i) {
    const Item& item = *order[i];
    if (i > 0) text += "\n";
    text += fmt::format("{}: {}{}{}", item.at.ToString(), item.path, item.path.empty() ? "" : ": ",
                        item.problem);
  }
  if (order.size() > kMostShown) {
    text += fmt::format("\n... and {} more", order.size() - kMostShown);
  }
  return InvalidArgument("{}", text);
}

std::string JoinPath(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace capstan
