#include "engine/config/overrides.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/config/job_keys.h"
#include "engine/config/scalars.h"
#include "engine/config/typed_reader.h"

namespace capstan {
namespace {

// A place in the tree and what the schema says of it. `type` is that of a Section for an item of a
// list of sections, whose field names the category.
struct Cursor {
  YamlNode* node;
  const TypeInfo* type;
  const FieldInfo* field;
};

class Walk {
 public:
  Walk(const ChoiceTable& choices, const Position& at) : choices_(choices), at_(at) {}

  const std::string& problem() const { return problem_; }

  // The value below `from` that `part` names, made if it is not there yet; nullopt sets problem().
  std::optional<Cursor> Step(Cursor from, std::string_view part) {
    while (from.type->kind == Kind::kOptional) from.type = from.type->element;
    switch (from.type->kind) {
      case Kind::kStruct:
        return IntoStruct(from, part);
      case Kind::kList:
        return IntoList(from, part);
      case Kind::kSection:
        return IntoSection(from, part);
      default:
        problem_ = "the value has no keys inside; end the path before this part";
        return std::nullopt;
    }
  }

 private:
  std::optional<Cursor> IntoStruct(Cursor from, std::string_view part) {
    ExpandShorthand(*from.type, from.node);
    if (from.node->kind == YamlNode::Kind::kNull) *from.node = YamlNode::Map(at_);
    if (from.node->kind != YamlNode::Kind::kMap) {
      problem_ = fmt::format("there is {} instead of a map around it", from.node->Describe());
      return std::nullopt;
    }
    const JobKeys keys(*from.type, *from.node, choices_);
    const auto key = keys.Find(part);
    if (!key.has_value()) {
      problem_ = keys.UnknownKey(std::string(part));
      return std::nullopt;
    }
    const FieldInfo& field = *key->field;
    YamlEntry* entry = from.node->Find(field.name);
    if (entry == nullptr && field.also != nullptr) entry = from.node->Find(field.also);
    if (entry == nullptr) {
      from.node->entries.push_back({field.name, at_, YamlNode::Null(at_)});
      entry = &from.node->entries.back();
    }
    return Cursor{&entry->value, key->is_selector ? &TypeOf<std::string>() : field.type, &field};
  }

  std::optional<Cursor> IntoList(Cursor from, std::string_view part) {
    std::vector<YamlNode>& items = from.node->items;
    size_t index = 0;
    const auto r = std::from_chars(part.data(), part.data() + part.size(), index);
    if (r.ec != std::errc() || r.ptr != part.data() + part.size()) {
      problem_ = "the items of a list are named by index, from 0";
      return std::nullopt;
    }
    if (index >= items.size()) {
      problem_ = items.empty()
                     ? "the list is empty; set it as a whole"
                     : fmt::format("the list has {} item{}; the last index is {}", items.size(),
                                   items.size() == 1 ? "" : "s", items.size() - 1);
      return std::nullopt;
    }
    return Cursor{&items[index], from.type->element, from.field};
  }

  std::optional<Cursor> IntoSection(Cursor from, std::string_view part) {
    if (from.node->kind == YamlNode::Kind::kScalar) {
      YamlNode map = YamlNode::Map(from.node->at);
      map.entries.push_back({from.node->text, from.node->at, YamlNode::Null(from.node->at)});
      *from.node = std::move(map);
    }
    const SectionItem item = SplitSectionItem(from.node);
    problem_ = item.problem;
    if (!problem_.empty()) return std::nullopt;
    if (item.name != part) {
      problem_ = fmt::format("this item is '{}'; write that name here", item.name);
      return std::nullopt;
    }
    const Choice* choice = FindChoice(choices_, from.field->category, item.name);
    if (choice == nullptr) {
      problem_ = NotOneOf(item.name, fmt::format("a {}", from.field->category),
                          ChoiceNames(choices_, from.field->category));
      return std::nullopt;
    }
    return Cursor{item.body, choice->options, nullptr};
  }

  const ChoiceTable& choices_;
  const Position& at_;
  std::string problem_;
};

}  // namespace

void ApplyOverride(const std::string& override, const TypeInfo& type, const ChoiceTable& choices,
                   YamlNode* root, Diagnostics* diagnostics) {
  const Position at{"-o " + override};
  const size_t equals = override.find('=');
  const std::string path(Trim(std::string_view(override).substr(0, equals)));
  if (equals == std::string::npos || path.empty()) {
    diagnostics->Add(at, "", "an override is written path=value");
    return;
  }
  std::optional<YamlNode> value =
      ParseYamlValue(std::string_view(override).substr(equals + 1), at, diagnostics);
  if (!value.has_value()) return;

  Walk walk(choices, at);
  std::optional<Cursor> cursor = Cursor{root, &type, nullptr};
  std::string walked;
  for (const std::string_view part : Split(path, '.')) {
    walked = JoinPath(walked, part);
    cursor = walk.Step(*cursor, part);
    if (!cursor.has_value()) {
      diagnostics->Add(at, walked, walk.problem());
      return;
    }
  }
  *cursor->node = *std::move(value);
}

}  // namespace capstan
