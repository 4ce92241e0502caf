// The choices a job may name: models, datasets, transforms, losses, optimizers, learning-rate
// schedules. The tool that knows them all fills the table and hands it in, so this folder includes
// none of them. Options must point to constant TypeInfo; a table is read from any thread.
//
//   ChoiceTable choices;
//   choices["model"].push_back({"resnet50", &TypeOf<ResNetOptions>(), "ResNet, 50 layers"});
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/reflect.h"

namespace capstan {

struct Choice {
  std::string name;
  const TypeInfo* options;  // a struct; TypeOf<NoAttrs>() where there are none
  std::string doc;
};

// Category ("model", "dataset", "transform", "loss", "optimizer", "lr", ...) to its choices.
using ChoiceTable = std::map<std::string, std::vector<Choice>, std::less<>>;

// The choice of that name, or null.
const Choice* FindChoice(const ChoiceTable& choices, std::string_view category,
                         std::string_view name);
std::vector<std::string> ChoiceNames(const ChoiceTable& choices, std::string_view category);

// CHECKs that no option hides a common key of the section it is inlined in, that no name or key is
// given twice and that all options are structs. Loading a job does this first.
void CheckChoices(const ChoiceTable& choices);

}  // namespace capstan
