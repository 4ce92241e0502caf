// A small YAML tree in which every node knows where it was written. Nothing is typed here: a
// scalar is its text, exactly as spelled, plus whether it was quoted.
//
// Aliases are copied in (so changing one place never changes another), merge keys `<<` are
// resolved (own keys win; of several maps the earlier wins). Refused with their places: a key given
// twice, a key without ':', a second document, tags, nesting beyond 64, more than 200,000 nodes
// (alias bombs), files beyond 4 MiB, text that is not UTF-8. Accepted: byte-order mark, CRLF.
// Plain values: safe to copy and to read from any thread.
//
//   Diagnostics diagnostics;
//   std::optional<YamlNode> root = ParseYaml("train: {epochs: 5}", "job.yaml", &diagnostics);
//   root->Find("train")->value.Find("epochs")->value.text;     // "5"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/diagnostics.h"

namespace capstan {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: written in quotes or as a block text
  Position at;
  std::vector<YamlNode> items;     // kList
  std::vector<YamlEntry> entries;  // kMap, in the order written

  static YamlNode Null(Position at);
  static YamlNode Scalar(std::string text, Position at);
  static YamlNode Map(Position at);

  // The entry of a map by key, or null.
  const YamlEntry* Find(std::string_view key) const;
  YamlEntry* Find(std::string_view key);

  // "the text 'maybe'", "a list", "a map", "nothing": for messages.
  std::string Describe() const;
};

struct YamlEntry {
  std::string key;
  Position at;
  YamlNode value;
  // The value holds an anchor that is used elsewhere: the key may exist for that alone.
  bool holds_anchor = false;
};

// The tree of one document, or nullopt when there is none or its structure cannot be followed (one
// diagnostic says why). Other mistakes are added to the diagnostics and the tree is still given.
// An empty document is a null node.
std::optional<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                                  Diagnostics* diagnostics);

// As above for a text that has no lines of its own: every node is placed at `origin`.
std::optional<YamlNode> ParseYamlValue(std::string_view text, const Position& origin,
                                       Diagnostics* diagnostics);

}  // namespace capstan
