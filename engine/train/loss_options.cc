#include "engine/train/loss_options.h"

namespace capstan {

std::span<const LossRow> LossRows() {
  static constexpr LossRow kRows[] = {
      {"cross_entropy", &TypeOf<CrossEntropyOptions>(), "softmax cross-entropy of class scores"}};
  return kRows;
}

Section DefaultLoss() { return {"cross_entropy", AnyStruct::Of(CrossEntropyOptions{})}; }

}  // namespace capstan
