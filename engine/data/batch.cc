#include "engine/data/batch.h"

namespace capstan {

const TensorView* Batch::Find(std::string_view name) const {
  for (const BatchTensor& t : tensors) {
    if (t.name == name) return &t.view;
  }
  return nullptr;
}

const TensorView& Batch::Get(std::string_view name) const {
  const TensorView* view = Find(name);
  CHECK(view != nullptr) << "the batch has no tensor '" << name << "'";
  return *view;
}

}  // namespace capstan
