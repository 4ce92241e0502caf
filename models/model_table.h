// Every model that a job may name, in the order of the help text. To add one: a folder beside
// resnet/ with a function that returns its rows, and a line in model_table.cc.
//
//   for (const ModelRow& model : AllModels()) choices["model"].push_back(...);
#pragma once

#include <vector>

#include "engine/train/model_row.h"

namespace capstan {

std::vector<ModelRow> AllModels();

}  // namespace capstan
