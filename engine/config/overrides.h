// `-o a.b=v`: changes to a job from the command line, made in the YAML tree before it is read, so
// that every check of the file holds for them too.
//
// The path is split at dots, names keys and list indices (from 0), and must exist in the schema;
// everything after the first `=` is a YAML value, and nothing after it means "not set". A map or
// list given so replaces the whole old value. Items of a list of sections are entered by name:
//
//   -o optimizer.lr=1e-3   -o dataset.train.transforms.1.RandFlipImage.flip_code=0   -o train.seed=
#pragma once

#include <string>

#include "engine/base/reflect.h"
#include "engine/config/choice_table.h"
#include "engine/config/diagnostics.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

// Applies one override ("a.b=v") to the tree of a struct of `type`.
void ApplyOverride(const std::string& override, const TypeInfo& type, const ChoiceTable& choices,
                   YamlNode* root, Diagnostics* diagnostics);

}  // namespace capstan
