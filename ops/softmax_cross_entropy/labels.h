// Class numbers of samples, of any integer type.
//
//   if (ClassifyLabel(label, classes, attrs) == LabelKind::kIgnored) loss = 0;
#pragma once

#include <cstdint>

#include "engine/tensor/tensor_view.h"
#include "ops/softmax_cross_entropy/softmax_cross_entropy.h"

namespace capstan {

enum class LabelKind : uint8_t { kClass, kIgnored, kInvalid };

inline int64_t LabelAt(const TensorView& labels, int64_t sample) {
  switch (labels.type.dtype) {
    case DType::kI64:
      return labels.Data<int64_t>()[sample];
    case DType::kI32:
      return labels.Data<int32_t>()[sample];
    default:
      return labels.Data<uint8_t>()[sample];
  }
}

inline LabelKind ClassifyLabel(int64_t label, int64_t classes,
                               const SoftmaxCrossEntropyAttrs& attrs) {
  if (label == attrs.ignore_index) return LabelKind::kIgnored;
  return label >= 0 && label < classes ? LabelKind::kClass : LabelKind::kInvalid;
}

}  // namespace capstan
