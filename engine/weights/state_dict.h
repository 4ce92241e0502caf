// What an unpickled weights file holds: the named tensors of its state dictionary.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/weights/pickle.h"

namespace capstan {

struct NamedPickleTensor {
  std::string name;
  const PickleTensor* tensor = nullptr;  // of the pickle
};

// The tensors of the dictionary at the root, or of the one that a training script put beside other
// things ("state_dict", "model" and so on). Paddle may pair a tensor with another name: (name,
// tensor). InvalidArgument where there is no tensor at all; DataLoss for names that are not UTF-8.
absl::StatusOr<std::vector<NamedPickleTensor>> TensorsOf(const Pickle& pickle,
                                                         const ByteSource& source);

// The tensors of a file of PaddlePaddle (`.pdparams`): one pickle of NumPy arrays.
absl::StatusOr<std::vector<StoredTensor>> ReadPaddleFile(const ByteSource& source,
                                                         const Pickle& pickle);

}  // namespace capstan
