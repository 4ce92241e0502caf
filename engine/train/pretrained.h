// Pretrained weights (`model.pretrained`): brings the tensors of a weights file into the parameters
// and running statistics of a model. Optimizer state stays as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/executor.h"
#include "engine/train/model_row.h"

namespace capstan {

struct PretrainedReport {
  size_t loaded = 0;
  size_t wanted = 0;                  // parameters and statistics of the model
  std::string source;                 // "w/resnet50.pth (PyTorch, torchvision names)"
  std::vector<std::string> problems;  // what was not loaded, a line each
  // Parameters and statistics that keep their first values.
  size_t left() const { return wanted - loaded; }
};

// Errors say what is wrong with the file, or that it is another network's (match_weights.h).
absl::StatusOr<PretrainedReport> LoadPretrained(Executor& executor, const ModelRow& model,
                                                const std::string& path);

}  // namespace capstan
