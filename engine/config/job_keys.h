// Which keys a map of the job may have: the fields of its struct, and for each section inlined in
// it the selector (`name`, `type`) and the options of the choice that the map makes. The reader,
// `-o` paths and the generated documents all ask here.
//
//   const JobKeys keys(TypeOf<ModelSpec>(), map, choices);
//   keys.Find("classes")->field;      // an option of the chosen model
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/reflect.h"
#include "engine/config/choice_table.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

// A Section (or optional Section) directly in a struct: its keys stand among the struct's own.
bool IsInlinedSection(const FieldInfo& field);

// `resnet50` for `{name: resnet50}`, `0.1` for `{name: constant, base: 0.1}`: writes a lone scalar
// out as the map that it stands for, where the type has such a short form.
void ExpandShorthand(const TypeInfo& type, YamlNode* node);

class JobKeys {
 public:
  struct InlinedSection {
    const FieldInfo* field;
    const YamlEntry* selector;  // null if the map does not give it
    const Choice* choice;       // null if it names none
  };
  struct Key {
    const FieldInfo* field;
    const InlinedSection* section;  // where the key is its selector or one of its options
    bool is_selector;
  };

  // The map must outlive this object and keep its entries.
  JobKeys(const TypeInfo& type, const YamlNode& map, const ChoiceTable& choices);

  // By name or other spelling.
  std::optional<Key> Find(std::string_view key) const;
  const std::vector<InlinedSection>& sections() const { return sections_; }
  // False while a section's choice is unknown, and so its options.
  bool complete() const;
  // What to say of a key that is not here: the nearest one, the place it belongs to, or all keys.
  std::string UnknownKey(const std::string& key) const;

 private:
  std::vector<std::string> Names() const;

  const TypeInfo& type_;
  std::vector<InlinedSection> sections_;
};

}  // namespace capstan
