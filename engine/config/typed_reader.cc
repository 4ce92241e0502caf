#include "engine/config/typed_reader.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "engine/config/job_keys.h"
#include "engine/config/lookalike.h"
#include "engine/config/scalars.h"

namespace capstan {
namespace {

std::string Expected(const char* what, const YamlNode& node, std::string_view advice) {
  const std::string hint =
      node.kind == YamlNode::Kind::kScalar && !node.quoted ? SpellingHint(node.text) : "";
  return fmt::format("expected {}, found {}; {}", what, node.Describe(),
                     hint.empty() ? advice : hint);
}

const char* ArticleFor(std::string_view noun) {
  return !noun.empty() && std::string_view("aeiou").find(noun[0]) != std::string_view::npos ? "an"
                                                                                            : "a";
}

class Reader {
 public:
  Reader(const ChoiceTable& choices, SourceMap* sources, Diagnostics* diagnostics)
      : choices_(choices), sources_(*sources), diagnostics_(*diagnostics) {}

  // `at` is where the map begins: its key, for a missing key has no place of its own.
  void ReadStruct(const TypeInfo& type, YamlNode* node, const Position& at, const std::string& path,
                  void* value) {
    ExpandShorthand(type, node);
    if (node->kind == YamlNode::Kind::kNull) node->kind = YamlNode::Kind::kMap;
    if (node->kind != YamlNode::Kind::kMap) {
      Fault(node->at, path, Expected("a map", *node, "write its keys as 'key: value'"));
      return;
    }
    const JobKeys keys(type, *node, choices_);
    std::vector<AnyStruct> options;
    for (const JobKeys::InlinedSection& section : keys.sections()) {
      options.push_back(ReadSelector(section, at, path));
    }
    const auto object_of = [&](const JobKeys::Key& key) -> void* {
      if (key.section == nullptr) return value;
      return options[static_cast<size_t>(key.section - keys.sections().data())].mutable_data();
    };

    std::map<const FieldInfo*, const YamlEntry*> given;
    for (YamlEntry& entry : node->entries) {
      const auto key = keys.Find(entry.key);
      if (!key.has_value()) {
        if (path.empty() && entry.holds_anchor) continue;
        if (keys.complete()) Fault(entry.at, JoinPath(path, entry.key), keys.UnknownKey(entry.key));
        continue;
      }
      const std::string key_path = JoinPath(path, key->field->name);
      const auto [first, added] = given.emplace(key->field, &entry);
      if (!added) {
        Fault(entry.at, key_path,
              fmt::format("'{}' and '{}' are the same key, at lines {} and {}; keep one",
                          first->second->key, entry.key, first->second->at.line, entry.at.line));
      } else if (!key->is_selector) {
        const bool scalar = entry.value.kind == YamlNode::Kind::kScalar;
        sources_.Set(key_path, scalar ? entry.value.at : entry.at);
        Read(*key->field, *key->field->type, &entry.value, entry.at, key_path,
             key->field->get(object_of(*key)));
      }
    }

    const auto require = [&](const FieldInfo& field) {
      const auto it = given.find(&field);
      const bool set = it != given.end() && it->second->value.kind != YamlNode::Kind::kNull;
      if (!field.required || set) return;
      Fault(it == given.end() ? at : it->second->at, JoinPath(path, field.name),
            fmt::format("missing; give it ({})", field.doc));
    };
    for (const FieldInfo& field : type.fields()) require(field);
    for (const JobKeys::InlinedSection& section : keys.sections()) {
      if (section.choice == nullptr) continue;
      for (const FieldInfo& field : section.choice->options->fields()) require(field);
    }
    for (size_t i = 0; i < options.size(); ++i) {
      const JobKeys::InlinedSection& section = keys.sections()[i];
      if (section.choice == nullptr) continue;
      void* target = section.field->get(value);
      const bool optional = section.field->type->kind == Kind::kOptional;
      if (optional) target = section.field->type->emplace(target);
      *static_cast<Section*>(target) = {section.choice->name, std::move(options[i])};
    }
  }

 private:
  void Fault(const Position& at, const std::string& path, std::string problem) {
    diagnostics_.Add(at, path, std::move(problem));
  }

  // The options' defaults, empty where no choice is made.
  AnyStruct ReadSelector(const JobKeys::InlinedSection& section, const Position& at,
                         const std::string& path) {
    const FieldInfo& field = *section.field;
    const std::string key_path = JoinPath(path, field.name);
    if (section.choice != nullptr) {
      sources_.Set(key_path, section.selector->value.at);
      return AnyStruct::Create(*section.choice->options);
    }
    const bool absent =
        section.selector == nullptr || section.selector->value.kind == YamlNode::Kind::kNull;
    if (absent && field.type->kind == Kind::kOptional) return {};
    if (absent) {
      Fault(section.selector == nullptr ? at : section.selector->at, key_path,
            fmt::format("missing; choose one of {}", Names(field)));
    } else {
      Fault(section.selector->value.at, key_path, NoSuchChoice(field, section.selector->value));
    }
    return {};
  }

  std::string Names(const FieldInfo& field) const {
    const auto names = ChoiceNames(choices_, field.category);
    return names.empty() ? "none: this program has no such parts"
                         : fmt::format("{}", fmt::join(names, ", "));
  }

  std::string NoSuchChoice(const FieldInfo& field, const YamlNode& node) const {
    if (node.kind != YamlNode::Kind::kScalar) {
      return fmt::format("expected the name of {} {}, found {}", ArticleFor(field.category),
                         field.category, node.Describe());
    }
    return NotOneOf(node.text, fmt::format("{} {}", ArticleFor(field.category), field.category),
                    ChoiceNames(choices_, field.category));
  }

  void Read(const FieldInfo& field, const TypeInfo& type, YamlNode* node, const Position& at,
            const std::string& path, void* value) {
    if (type.kind == Kind::kOptional) {
      const bool unset =
          node->kind == YamlNode::Kind::kNull ||
          (node->kind == YamlNode::Kind::kScalar && !node->quoted && node->text == field.unset);
      if (unset) {
        type.reset(value);
      } else {
        Read(field, *type.element, node, at, path, type.emplace(value));
      }
      return;
    }
    if (node->kind == YamlNode::Kind::kNull) return;

    std::string problem;
    switch (type.kind) {
      case Kind::kBool:
        problem = ReadBool(*node, static_cast<bool*>(value));
        break;
      case Kind::kInt: {
        auto* number = static_cast<int64_t*>(value);
        problem = ReadInt(*node, number);
        if (problem.empty()) {
          problem = CheckBounds(static_cast<double>(*number), node->text, field.bounds);
        }
        break;
      }
      case Kind::kFloat: {
        auto* number = static_cast<double*>(value);
        problem = ReadFloat(*node, number);
        if (problem.empty()) problem = CheckBounds(*number, node->text, field.bounds);
        break;
      }
      case Kind::kString:
        if (node->kind == YamlNode::Kind::kScalar) {
          *static_cast<std::string*>(value) = node->text;
        } else {
          problem = Expected("a text", *node, "quote it if it is one");
        }
        break;
      case Kind::kEnum: {
        int64_t index = 0;
        problem = ReadEnum(*node, type.enum_names(), &index);
        if (problem.empty()) type.enum_set(value, index);
        break;
      }
      case Kind::kList:
        ReadList(field, type, node, path, value);
        break;
      case Kind::kStruct:
        ReadStruct(type, node, at, path, value);
        break;
      case Kind::kSection:
        ReadSection(field, node, at, path, static_cast<Section*>(value));
        break;
      case Kind::kOptional:
        break;
    }
    if (!problem.empty()) Fault(node->at, path, std::move(problem));
  }

  void ReadList(const FieldInfo& field, const TypeInfo& type, YamlNode* node,
                const std::string& path, void* value) {
    if (node->kind != YamlNode::Kind::kList) {
      Fault(node->at, path,
            Expected("a list", *node,
                     node->kind == YamlNode::Kind::kScalar ? fmt::format("write [{}]", node->text)
                                                           : "write its items after '- '"));
      return;
    }
    const size_t n = node->items.size();
    type.resize(value, 0);
    type.resize(value, n);
    for (size_t i = 0; i < n; ++i) {
      YamlNode& item = node->items[i];
      const std::string item_path = JoinPath(path, std::to_string(i));
      sources_.Set(item_path, item.at);
      // Nobody means an empty item, and `null` may be meant as a text.
      if (item.kind == YamlNode::Kind::kNull ||
          (item.kind == YamlNode::Kind::kScalar && item.text.empty())) {
        Fault(item.at, item_path,
              "the item is empty or null; remove it, or quote it if it is a word");
        continue;
      }
      Read(field, *type.element, &item, item.at, item_path, type.at(value, i));
    }
  }

  void ReadSection(const FieldInfo& field, YamlNode* node, const Position& at,
                   const std::string& path, Section* section) {
    SectionItem item = SplitSectionItem(node);
    if (!item.problem.empty()) {
      Fault(node->at, path, item.problem);
      return;
    }
    const Choice* choice = FindChoice(choices_, field.category, item.name);
    if (choice == nullptr) {
      Fault(node->at, path, NoSuchChoice(field, YamlNode::Scalar(item.name, node->at)));
      return;
    }
    const std::string name_path = JoinPath(path, item.name);
    sources_.Set(name_path, node->at);
    section->name = item.name;
    section->options = AnyStruct::Create(*choice->options);
    YamlNode none = YamlNode::Null(node->at);
    ReadStruct(*choice->options, item.body == nullptr ? &none : item.body, at, name_path,
               section->options.mutable_data());
  }

  const ChoiceTable& choices_;
  SourceMap& sources_;
  Diagnostics& diagnostics_;
};

}  // namespace

void ReadTyped(const TypeInfo& type, YamlNode* root, const ChoiceTable& choices, void* value,
               SourceMap* sources, Diagnostics* diagnostics) {
  sources->Set("", root->at);
  Reader(choices, sources, diagnostics).ReadStruct(type, root, root->at, "", value);
}

SectionItem SplitSectionItem(YamlNode* item) {
  if (item->kind == YamlNode::Kind::kScalar) return {item->text, nullptr, ""};
  if (item->kind == YamlNode::Kind::kMap && item->entries.size() == 1) {
    return {item->entries[0].key, &item->entries[0].value, ""};
  }
  if (item->kind == YamlNode::Kind::kMap && !item->entries.empty()) {
    const std::string& name = item->entries[0].key;
    return {"", nullptr,
            fmt::format("expected one name with its options, found {} keys; indent the options "
                        "below '{}:' or write '{}: {{...}}'",
                        item->entries.size(), name, name)};
  }
  return {"", nullptr, fmt::format("expected 'Name: {{options}}', found {}", item->Describe())};
}

}  // namespace capstan
