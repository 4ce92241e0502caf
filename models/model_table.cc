#include "models/model_table.h"

#include "models/resnet/resnet.h"

namespace capstan {

std::vector<ModelRow> AllModels() {
  std::vector<ModelRow> all;
  for (const std::vector<ModelRow>& family : {ResNetModels()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace capstan
