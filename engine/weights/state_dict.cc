#include "engine/weights/state_dict.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors.h"

namespace capstan {
namespace {

// Under which keys training scripts put the weights.
constexpr std::array<std::string_view, 8> kWrappers = {
    "state_dict", "model_state_dict", "model", "module", "net", "network", "weights", "params"};

// What Paddle says of a dictionary whose arrays of more than 1 GiB it cut into pieces.
constexpr std::string_view kPaddlePieces = "UnpackBigParamInfor@@";

// The tensor that a value is, or null.
const PickleTensor* TensorOf(const Pickle& pickle, const PickleObject& value) {
  const PickleObject* object = &value;
  if (value.kind == PickleKind::kTuple && value.items.size() == 2 &&
      pickle.at(value.items[0]).kind == PickleKind::kText) {
    object = &pickle.at(value.items[1]);
  }
  if (object->kind != PickleKind::kTensor) return nullptr;
  const PickleTensor& tensor = pickle.tensors()[static_cast<size_t>(object->number)];
  return tensor.filled ? &tensor : nullptr;
}

absl::StatusOr<std::vector<NamedPickleTensor>> TensorsIn(const Pickle& pickle,
                                                         const PickleObject& dict,
                                                         const ByteSource& source) {
  std::vector<NamedPickleTensor> tensors;
  std::unordered_set<std::string> names;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleObject& key = pickle.at(dict.items[i]);
    if (key.kind != PickleKind::kText) continue;
    const PickleTensor* tensor = TensorOf(pickle, pickle.at(dict.items[i + 1]));
    if (tensor == nullptr && key.range.size != kPaddlePieces.size()) continue;
    ASSIGN_OR_RETURN(std::string name, pickle.TextOf(key));
    if (name == kPaddlePieces) {
      return InvalidArgument(
          "{}: it holds arrays cut into pieces (more than 1 GiB each), which are not supported; "
          "save it again with paddle.save(..., protocol=4)",
          source.name());
    }
    if (tensor == nullptr) continue;
    if (!IsUtf8(name)) return DataLoss("{}: a tensor has a name that is not UTF-8", source.name());
    // At once: a small file can repeat a long name without end.
    if (!names.insert(name).second) {
      return DataLoss("{}: tensor {} is there twice", source.name(), Quote(name));
    }
    tensors.push_back({std::move(name), tensor});
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::vector<NamedPickleTensor>> TensorsOf(const Pickle& pickle,
                                                         const ByteSource& source) {
  const PickleObject& root = pickle.root();
  std::vector<std::string_view> tried;
  for (size_t i = 0; i + 1 < root.items.size() && root.kind == PickleKind::kDict; i += 2) {
    const PickleObject &key = pickle.at(root.items[i]), &value = pickle.at(root.items[i + 1]);
    if (key.kind != PickleKind::kText || value.kind != PickleKind::kDict) continue;
    ASSIGN_OR_RETURN(const std::string name, pickle.TextOf(key));
    const auto* wrapper = std::find(kWrappers.begin(), kWrappers.end(), name);
    if (wrapper == kWrappers.end()) continue;
    // Once each: a small file can repeat a large dictionary without end.
    if (std::find(tried.begin(), tried.end(), *wrapper) != tried.end()) continue;
    tried.push_back(*wrapper);
    ASSIGN_OR_RETURN(std::vector<NamedPickleTensor> inner, TensorsIn(pickle, value, source));
    if (!inner.empty()) return inner;
  }
  if (root.kind == PickleKind::kDict) {
    ASSIGN_OR_RETURN(std::vector<NamedPickleTensor> tensors, TensorsIn(pickle, root, source));
    if (!tensors.empty()) return tensors;
  }
  return InvalidArgument(
      "{}: it holds no dictionary of tensors; save one with torch.save(model.state_dict(), "
      "\"x.pth\") or paddle.save(model.state_dict(), \"x.pdparams\")",
      source.name());
}

absl::StatusOr<std::vector<StoredTensor>> ReadPaddleFile(const ByteSource& source,
                                                         const Pickle& pickle) {
  ASSIGN_OR_RETURN(const std::vector<NamedPickleTensor> named, TensorsOf(pickle, source));
  std::vector<StoredTensor> tensors;
  for (const NamedPickleTensor& n : named) {
    if (n.tensor->storage >= 0) {
      return DataLoss("{}: tensor {} has its bytes elsewhere, and there is no elsewhere",
                      source.name(), Quote(n.name));
    }
    tensors.push_back(n.tensor->tensor);
    tensors.back().name = n.name;
  }
  return tensors;
}

}  // namespace capstan
