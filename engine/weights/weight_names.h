// WeightNames: how one family of weights files names what a model calls by its own names. A model
// lists one for each family (ModelRow::weight_names); match_weights.h takes the one that fits.
//
//   {.family = "PaddleClas",
//    .modules = {{"stem.0.conv", "conv1"}, {"stem.0.bn", "bn1"}},
//    .leaves = {{"_mean", "running_mean"}, {"_variance", "running_var"}},
//    .transposed = {"fc.weight"}}
#pragma once

#include <string>
#include <vector>

namespace capstan {

struct WeightName {
  std::string theirs;
  std::string ours;
};

struct WeightNames {
  std::string family;  // for messages: "torchvision"
  // Whole paths of modules; a path that is not listed is the same in both.
  std::vector<WeightName> modules;
  // The last parts of names; others are the same.
  std::vector<WeightName> leaves;
  // Our names of matrices that the file has as [in, out] where we have [out, in].
  std::vector<std::string> transposed;
  // Last parts of their names that we have no use for.
  std::vector<std::string> ignored;
};

}  // namespace capstan
