// Job files of other tools, read unchanged. A dialect is a table: one row for each key that its
// files may have, with the key of ours that takes the value, or why it has no meaning here. The
// table is closed: a key without a row is an error that names the nearest key.
//
// Translation works on positioned YAML trees and happens before types are read, so a wrong value is
// reported by the one reader of types at the place where the user wrote it.
//
//   const Dialect* dialect = FindDialect(root);              // null: our own form
//   if (dialect != nullptr) root = Translate(*dialect, root, choices, &ignored, &diagnostics);
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/choice_table.h"
#include "engine/config/diagnostics.h"
#include "engine/config/job_spec.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

class Translation;

// What becomes of a key. Its whole value is taken: a row below another one is never reached.
struct DialectRow {
  std::string path;  // "Global.epochs"
  std::string to;    // "train.epochs": takes the value; empty: ignored, or `only` is set
  std::string why;   // where `to` is empty: ignored, because ...
  std::string only;  // the one value that is not an error
  std::vector<std::pair<const char*, const char*>> words;  // their words, ours
  const char* category = nullptr;                          // names a choice, in any case
  // Does it all by itself, in place of moving the value.
  void (*convert)(const YamlEntry& entry, const DialectRow& row, Translation* t) = nullptr;
};

struct Dialect {
  std::string name;                // "PaddleClas"
  std::vector<std::string> marks;  // a file with one of these keys at its top is of this dialect
  std::vector<DialectRow> rows;
  void (*finish)(Translation* t);  // what follows from several keys, or from keys left out
};

// The state of one translation, for the functions of a dialect.
class Translation {
 public:
  Translation(const YamlNode& root, const ChoiceTable& choices, std::vector<IgnoredKey>* ignored,
              Diagnostics* diagnostics);

  // The value of a dotted path of the file, or null where it is absent or empty.
  const YamlNode* Given(std::string_view path) const;
  // True if a switch is there and on.
  bool IsOn(std::string_view path);
  // The value of a key of ours set so far, or null.
  const YamlNode* Find(std::string_view path) const;
  // Sets a key of ours, with the maps around it.
  void Set(std::string_view path, YamlNode value);
  void SetText(std::string_view path, std::string text, const Position& at);
  // A choice of the category, whose case may differ; other names stay as they are.
  std::string ChoiceName(std::string_view category, const std::string& name) const;

  void Ignore(const Position& at, std::string path, std::string why);
  void Fault(const Position& at, std::string path, std::string problem);

 private:
  friend YamlNode Translate(const Dialect& dialect, const YamlNode& root,
                            const ChoiceTable& choices, std::vector<IgnoredKey>* ignored,
                            Diagnostics* diagnostics);

  const YamlNode& root_;
  const ChoiceTable& choices_;
  std::vector<IgnoredKey>& ignored_;
  Diagnostics& diagnostics_;
  YamlNode out_;
};

// The dialect of a file, or null for our own form.
const Dialect* FindDialect(const YamlNode& root);

// The same job in our own form. Every value keeps its place.
YamlNode Translate(const Dialect& dialect, const YamlNode& root, const ChoiceTable& choices,
                   std::vector<IgnoredKey>* ignored, Diagnostics* diagnostics);

// True if an override ("Global.epochs=3") begins with a top-level key of the dialect. Others are
// of our own form and come after the translation.
bool IsOverrideOf(const Dialect& dialect, std::string_view override);

// Makes the override in the file's own tree. Maps that a path names and the file lacks are made;
// whether the dialect has such a key is found while translating.
void ApplyDialectOverride(const std::string& override, YamlNode* root, Diagnostics* diagnostics);

// All dialects.
const std::vector<Dialect>& Dialects();

Dialect PaddleClasDialect();

}  // namespace capstan
