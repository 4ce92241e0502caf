#include "engine/config/job_keys.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/text.h"
#include "engine/config/diagnostics.h"
#include "engine/config/job_spec.h"
#include "engine/config/lookalike.h"

namespace capstan {
namespace {

// Paths of the maps that have a field of this name, options of choices aside.
void FindOwners(const TypeInfo& type, std::string_view key, const std::string& path,
                std::vector<std::string>* owners) {
  for (const FieldInfo& field : type.fields()) {
    const TypeInfo* inner = field.type->kind == Kind::kOptional ? field.type->element : field.type;
    if (key == field.name && !IsInlinedSection(field)) owners->push_back(path);
    if (inner->kind == Kind::kStruct) {
      FindOwners(*inner, key, JoinPath(path, field.name), owners);
    }
  }
}

}  // namespace

bool IsInlinedSection(const FieldInfo& field) {
  return field.type->kind == Kind::kSection ||
         (field.type->kind == Kind::kOptional && field.type->element->kind == Kind::kSection);
}

void ExpandShorthand(const TypeInfo& type, YamlNode* node) {
  if (type.kind != Kind::kStruct || node->kind != YamlNode::Kind::kScalar) return;
  YamlNode map = YamlNode::Map(node->at);
  if (type.shorthand != nullptr) {
    const Shorthand& s = *type.shorthand;
    if (s.also_key != nullptr) {
      map.entries.push_back({s.also_key, node->at, YamlNode::Scalar(s.also_value, node->at)});
    }
    map.entries.push_back({s.key, node->at, *node});
  } else {
    for (const FieldInfo& field : type.fields()) {
      if (IsInlinedSection(field)) map.entries.push_back({field.name, node->at, *node});
    }
    if (map.entries.size() != 1) return;
  }
  *node = std::move(map);
}

JobKeys::JobKeys(const TypeInfo& type, const YamlNode& map, const ChoiceTable& choices)
    : type_(type) {
  for (const FieldInfo& field : type.fields()) {
    if (!IsInlinedSection(field)) continue;
    const YamlEntry* selector = map.Find(field.name);
    const bool named = selector != nullptr && selector->value.kind == YamlNode::Kind::kScalar;
    sections_.push_back(
        {&field, selector,
         named ? FindChoice(choices, field.category, selector->value.text) : nullptr});
  }
}

std::optional<JobKeys::Key> JobKeys::Find(std::string_view key) const {
  const auto is_key = [&](const FieldInfo& f) {
    return key == f.name || (f.also != nullptr && key == f.also);
  };
  for (const InlinedSection& section : sections_) {
    if (key == section.field->name) return Key{section.field, &section, true};
    if (section.choice == nullptr) continue;
    for (const FieldInfo& field : section.choice->options->fields()) {
      if (is_key(field)) return Key{&field, &section, false};
    }
  }
  for (const FieldInfo& field : type_.fields()) {
    if (!IsInlinedSection(field) && is_key(field)) return Key{&field, nullptr, false};
  }
  return std::nullopt;
}

bool JobKeys::complete() const {
  for (const InlinedSection& section : sections_) {
    const bool absent = section.selector == nullptr && section.field->type->kind == Kind::kOptional;
    if (section.choice == nullptr && !absent) return false;
  }
  return true;
}

std::vector<std::string> JobKeys::Names() const {
  std::vector<std::string> names;
  for (const FieldInfo& field : type_.fields()) names.push_back(field.name);
  for (const InlinedSection& section : sections_) {
    if (section.choice == nullptr) continue;
    for (const FieldInfo& field : section.choice->options->fields()) names.push_back(field.name);
  }
  return names;
}

std::string JobKeys::UnknownKey(const std::string& key) const {
  if (const std::string hint = SpellingHint(key); !hint.empty()) {
    return fmt::format("unknown key; {}", hint);
  }
  const std::vector<std::string> names = Names();
  const std::string nearest = Nearest(key, names);
  std::vector<std::string> owners;
  FindOwners(TypeOf<JobSpec>(), key, "", &owners);
  if (owners.size() == 1) {
    return fmt::format(
        "unknown key here; '{}' belongs {}", key,
        owners[0].empty() ? "at the top level" : fmt::format("under '{}'", owners[0]));
  }
  if (!nearest.empty()) return fmt::format("unknown key; did you mean '{}'?", nearest);
  if (names.empty()) return "unknown key; no keys are known here";
  return fmt::format("unknown key; the keys here are {}", fmt::join(names, ", "));
}

}  // namespace capstan
