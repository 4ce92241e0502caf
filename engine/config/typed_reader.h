// From a positioned YAML tree to a typed value, checking everything the reflected fields say: known
// keys, kinds, bounds, allowed words, choices, required keys. Reports all mistakes and goes on.
//
//   ReadTyped(TypeOf<JobSpec>(), &root, choices, &spec, &spec.sources, &diagnostics);
#pragma once

#include "engine/base/reflect.h"
#include "engine/config/choice_table.h"
#include "engine/config/diagnostics.h"
#include "engine/config/source_map.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

// `value` is a struct of `type`, holding its defaults. An empty or null value of the tree means
// "not set": an optional becomes unset, anything else keeps its default. Short forms in `root` are
// written out in place. Keys of the root that only hold anchors used elsewhere are passed over.
void ReadTyped(const TypeInfo& type, YamlNode* root, const ChoiceTable& choices, void* value,
               SourceMap* sources, Diagnostics* diagnostics);

// The items of a list of sections are `Name`, `Name:` or `Name: {options}`. Gives name and options
// (null where there are none), or what is wrong.
struct SectionItem {
  std::string name;
  YamlNode* body;
  std::string problem;
};
SectionItem SplitSectionItem(YamlNode* item);

}  // namespace capstan
