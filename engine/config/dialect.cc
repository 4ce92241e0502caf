#include "engine/config/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "engine/base/text.h"
#include "engine/config/lookalike.h"
#include "engine/config/scalars.h"

namespace capstan {
namespace {

std::string Folded(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return folded;
}

const YamlNode* FindBelow(const YamlNode& root, std::string_view path) {
  const YamlNode* node = &root;
  for (const std::string_view part : Split(path, '.')) {
    const YamlEntry* entry = node->Find(part);
    if (entry == nullptr) return nullptr;
    node = &entry->value;
  }
  return node->kind == YamlNode::Kind::kNull ? nullptr : node;
}

class Walker {
 public:
  Walker(const Dialect& dialect, Translation* t) : dialect_(dialect), t_(*t) {}

  void WalkMap(const YamlNode& map, const std::string& path) {
    for (const YamlEntry& entry : map.entries) {
      const std::string key_path = JoinPath(path, entry.key);
      if (const DialectRow* row = FindRow(key_path)) {
        if (entry.value.kind != YamlNode::Kind::kNull) Apply(*row, entry);
      } else if (KeysBelow(key_path).empty()) {
        if (!(path.empty() && entry.holds_anchor)) {
          t_.Fault(entry.at, key_path, UnknownKey(entry.key, path));
        }
      } else if (entry.value.kind == YamlNode::Kind::kMap) {
        WalkMap(entry.value, key_path);
      } else if (entry.value.kind != YamlNode::Kind::kNull) {
        t_.Fault(entry.value.at, key_path,
                 fmt::format("expected a map, found {}; the keys here are {}",
                             entry.value.Describe(), fmt::join(KeysBelow(key_path), ", ")));
      }
    }
  }

 private:
  const DialectRow* FindRow(std::string_view path) const {
    const auto it = std::find_if(dialect_.rows.begin(), dialect_.rows.end(),
                                 [&](const DialectRow& row) { return row.path == path; });
    return it == dialect_.rows.end() ? nullptr : &*it;
  }

  // The keys of the map at `path` (empty: the root), each once.
  std::vector<std::string> KeysBelow(const std::string& path) const {
    const std::string prefix = path.empty() ? "" : path + ".";
    std::vector<std::string> keys;
    for (const DialectRow& row : dialect_.rows) {
      if (!row.path.starts_with(prefix)) continue;
      const std::string_view rest = std::string_view(row.path).substr(prefix.size());
      std::string key(rest.substr(0, rest.find('.')));
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
    }
    return keys;
  }

  std::string UnknownKey(const std::string& key, const std::string& path) const {
    if (const std::string hint = SpellingHint(key); !hint.empty()) {
      return fmt::format("unknown key; {}", hint);
    }
    std::vector<std::string_view> owners;
    for (const DialectRow& row : dialect_.rows) {
      if (row.path.ends_with("." + key)) {
        owners.push_back(std::string_view(row.path).substr(0, row.path.size() - key.size() - 1));
      }
    }
    if (owners.size() == 1) {
      return fmt::format("unknown key here; in a {} job '{}' belongs under '{}'", dialect_.name,
                         key, owners[0]);
    }
    const std::vector<std::string> keys = KeysBelow(path);
    const std::string nearest = Nearest(key, keys);
    if (!nearest.empty()) return fmt::format("unknown key; did you mean '{}'?", nearest);
    return fmt::format("unknown key; the keys of a {} job here are {}", dialect_.name,
                       fmt::join(keys, ", "));
  }

  void Apply(const DialectRow& row, const YamlEntry& entry) {
    YamlNode value = entry.value;
    const bool scalar = value.kind == YamlNode::Kind::kScalar;
    if (!row.only.empty()) {
      if (!scalar || Folded(value.text) != Folded(row.only)) {
        t_.Fault(
            value.at, row.path,
            fmt::format("{} cannot be honoured: {}; use {}", value.Describe(), row.why, row.only));
      }
      return;
    }
    if (row.convert != nullptr) return row.convert(entry, row, &t_);
    if (row.to.empty()) {
      t_.Ignore(entry.at, row.path, row.why);
      return;
    }
    if (scalar && row.category != nullptr) value.text = t_.ChoiceName(row.category, value.text);
    for (const auto& [theirs, ours] : row.words) {
      if (scalar && Folded(value.text) == Folded(theirs)) {
        value.text = ours;
        break;
      }
    }
    t_.Set(row.to, std::move(value));
  }

  const Dialect& dialect_;
  Translation& t_;
};

}  // namespace

Translation::Translation(const YamlNode& root, const ChoiceTable& choices,
                         std::vector<IgnoredKey>* ignored, Diagnostics* diagnostics)
    : root_(root),
      choices_(choices),
      ignored_(*ignored),
      diagnostics_(*diagnostics),
      out_(YamlNode::Map(root.at)) {}

const YamlNode* Translation::Given(std::string_view path) const { return FindBelow(root_, path); }

const YamlNode* Translation::Find(std::string_view path) const { return FindBelow(out_, path); }

bool Translation::IsOn(std::string_view path) {
  const YamlNode* node = Given(path);
  if (node == nullptr) return false;
  bool on = false;
  if (std::string problem = ReadBool(*node, &on); !problem.empty()) {
    Fault(node->at, std::string(path), std::move(problem));
  }
  return on;
}

void Translation::Set(std::string_view path, YamlNode value) {
  YamlNode* node = &out_;
  for (const std::string_view part : Split(path, '.')) {
    if (node->kind != YamlNode::Kind::kMap) *node = YamlNode::Map(value.at);
    YamlEntry* entry = node->Find(part);
    if (entry == nullptr) {
      node->entries.push_back({std::string(part), value.at, YamlNode::Map(value.at)});
      entry = &node->entries.back();
    }
    node = &entry->value;
  }
  *node = std::move(value);
}

void Translation::SetText(std::string_view path, std::string text, const Position& at) {
  Set(path, YamlNode::Scalar(std::move(text), at));
}

std::string Translation::ChoiceName(std::string_view category, const std::string& name) const {
  for (const std::string& known : ChoiceNames(choices_, category)) {
    if (Folded(known) == Folded(name)) return known;
  }
  return name;
}

void Translation::Ignore(const Position& at, std::string path, std::string why) {
  ignored_.push_back({at, std::move(path), std::move(why)});
}

void Translation::Fault(const Position& at, std::string path, std::string problem) {
  diagnostics_.Add(at, std::move(path), std::move(problem));
}

const Dialect* FindDialect(const YamlNode& root) {
  for (const Dialect& dialect : Dialects()) {
    for (const std::string& mark : dialect.marks) {
      if (root.Find(mark) != nullptr) return &dialect;
    }
  }
  return nullptr;
}

YamlNode Translate(const Dialect& dialect, const YamlNode& root, const ChoiceTable& choices,
                   std::vector<IgnoredKey>* ignored, Diagnostics* diagnostics) {
  Translation t(root, choices, ignored, diagnostics);
  Walker(dialect, &t).WalkMap(root, "");
  dialect.finish(&t);
  return std::move(t.out_);
}

bool IsOverrideOf(const Dialect& dialect, std::string_view override) {
  const std::string_view first = Trim(override.substr(0, override.find_first_of(".=")));
  return std::any_of(dialect.rows.begin(), dialect.rows.end(), [&](const DialectRow& row) {
    return first == std::string_view(row.path).substr(0, row.path.find('.'));
  });
}

void ApplyDialectOverride(const std::string& override, YamlNode* root, Diagnostics* diagnostics) {
  const Position at{"-o " + override};
  const size_t equals = override.find('=');
  const std::string path(Trim(std::string_view(override).substr(0, equals)));
  if (equals == std::string::npos) {
    diagnostics->Add(at, "", "an override is written path=value");
    return;
  }
  std::optional<YamlNode> value =
      ParseYamlValue(std::string_view(override).substr(equals + 1), at, diagnostics);
  if (!value.has_value()) return;
  YamlNode* node = root;
  std::string walked;
  for (const std::string_view part : Split(path, '.')) {
    walked = JoinPath(walked, part);
    if (node->kind == YamlNode::Kind::kList) {
      size_t index = 0;
      const auto r = std::from_chars(part.data(), part.data() + part.size(), index);
      if (r.ec != std::errc() || r.ptr != part.data() + part.size() ||
          index >= node->items.size()) {
        diagnostics->Add(
            at, walked,
            fmt::format("the list has {} items, named by index from 0", node->items.size()));
        return;
      }
      node = &node->items[index];
      continue;
    }
    if (node->kind == YamlNode::Kind::kNull) *node = YamlNode::Map(at);
    if (node->kind != YamlNode::Kind::kMap) {
      diagnostics->Add(at, walked, "the value has no keys inside; end the path before this part");
      return;
    }
    YamlEntry* entry = node->Find(part);
    if (entry == nullptr) {
      node->entries.push_back({std::string(part), at, YamlNode::Null(at)});
      entry = &node->entries.back();
    }
    node = &entry->value;
  }
  *node = *std::move(value);
}

const std::vector<Dialect>& Dialects() {
  static const auto& dialects = *new std::vector<Dialect>{PaddleClasDialect()};
  return dialects;
}

}  // namespace capstan
