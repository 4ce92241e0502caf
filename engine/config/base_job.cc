#include "engine/config/base_job.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "engine/base/status.h"

namespace capstan {
namespace {

constexpr char kBaseKey[] = "_base_";

void MergeBelow(YamlNode base, YamlNode* over) {
  for (YamlEntry& below : base.entries) {
    YamlEntry* above = over->Find(below.key);
    if (above == nullptr) {
      over->entries.push_back(std::move(below));
    } else if (above->value.kind == YamlNode::Kind::kMap &&
               below.value.kind == YamlNode::Kind::kMap) {
      MergeBelow(std::move(below.value), &above->value);
    } else if (above->value.kind == YamlNode::Kind::kNull) {
      over->entries.erase(over->entries.begin() + (above - over->entries.data()));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return InvalidArgument("open {}: it is a folder", path);
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return ErrnoStatus(errno, "open " + path);
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return ErrnoStatus(errno, "read " + path);
  return text.str();
}

void MergeBase(const std::string& file, YamlNode* root, Diagnostics* diagnostics) {
  const YamlEntry* entry = root->Find(kBaseKey);
  if (entry == nullptr) return;
  const YamlNode value = entry->value;
  root->entries.erase(root->entries.begin() + (entry - root->entries.data()));
  if (value.kind != YamlNode::Kind::kScalar) {
    diagnostics->Add(value.at, kBaseKey,
                     fmt::format("expected one file name, found {}", value.Describe()));
    return;
  }
  const std::string path = (std::filesystem::path(file).parent_path() / value.text).string();
  const auto text = ReadTextFile(path);
  if (!text.ok()) {
    diagnostics->Add(value.at, kBaseKey, MessageOf(text.status()));
    return;
  }
  std::optional<YamlNode> base = ParseYaml(*text, path, diagnostics);
  if (!base.has_value()) return;
  if (const YamlEntry* deeper = base->Find(kBaseKey)) {
    diagnostics->Add(
        deeper->at, kBaseKey,
        fmt::format("{} is a base itself; a base has no base, merge the two files", path));
    return;
  }
  MergeBelow(*std::move(base), root);
}

}  // namespace capstan
