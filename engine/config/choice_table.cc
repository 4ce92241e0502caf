#include "engine/config/choice_table.h"

#include <set>

#include "engine/base/check.h"
#include "engine/config/job_keys.h"
#include "engine/config/job_spec.h"

namespace capstan {
namespace {

using Seen = std::set<const TypeInfo*>;

void CheckFields(const TypeInfo& type, const ChoiceTable& choices, Seen* seen);

// Keys of `options` where they are inlined among those of `owner` (null: alone in their map).
void CheckOptions(const Choice& choice, const TypeInfo* owner, const ChoiceTable& choices,
                  Seen* seen) {
  CHECK(choice.options != nullptr && choice.options->kind == Kind::kStruct)
      << "options of '" << choice.name << "' are not a struct";
  std::set<std::string_view> taken;
  if (owner != nullptr) {
    for (const FieldInfo& field : owner->fields()) taken.insert(field.name);
  }
  for (const FieldInfo& field : choice.options->fields()) {
    CHECK(taken.insert(field.name).second)
        << "option '" << field.name << "' of '" << choice.name << "' is a common key already";
    CHECK(!IsInlinedSection(field)) << "'" << choice.name << "." << field.name
                                    << "': wrap a section of an option in a struct of its own";
  }
  CheckFields(*choice.options, choices, seen);
}

void CheckFields(const TypeInfo& type, const ChoiceTable& choices, Seen* seen) {
  if (!seen->insert(&type).second) return;
  for (const FieldInfo& field : type.fields()) {
    const TypeInfo* inner = field.type;
    while (inner->kind == Kind::kOptional || inner->kind == Kind::kList) inner = inner->element;
    if (inner->kind == Kind::kStruct) CheckFields(*inner, choices, seen);
    if (inner->kind != Kind::kSection) continue;
    const auto category = choices.find(field.category);
    if (category == choices.end()) continue;
    for (const Choice& choice : category->second) {
      CheckOptions(choice, IsInlinedSection(field) ? &type : nullptr, choices, seen);
    }
  }
}

}  // namespace

const Choice* FindChoice(const ChoiceTable& choices, std::string_view category,
                         std::string_view name) {
  const auto it = choices.find(category);
  if (it == choices.end()) return nullptr;
  for (const Choice& choice : it->second) {
    if (choice.name == name) return &choice;
  }
  return nullptr;
}

std::vector<std::string> ChoiceNames(const ChoiceTable& choices, std::string_view category) {
  std::vector<std::string> names;
  if (const auto it = choices.find(category); it != choices.end()) {
    for (const Choice& choice : it->second) names.push_back(choice.name);
  }
  return names;
}

void CheckChoices(const ChoiceTable& choices) {
  for (const auto& [category, list] : choices) {
    std::set<std::string_view> names;
    for (const Choice& choice : list) {
      CHECK(names.insert(choice.name).second)
          << category << " '" << choice.name << "' is registered twice";
    }
  }
  Seen seen;
  CheckFields(TypeOf<JobSpec>(), choices, &seen);
}

}  // namespace capstan
