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
    // Overrides, which have no lines, keep the order in which they were found.
    if (a->at.line == 0 || b->at.line == 0) return a->at.line != 0 && b->at.line == 0;
    return std::tie(a->at.file, a->at.line, a->at.column) <
           std::tie(b->at.file, b->at.line, b->at.column);
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
