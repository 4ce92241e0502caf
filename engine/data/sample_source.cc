#include "engine/data/sample_source.h"

namespace capstan {

TensorType SampleField::BatchType(int64_t n) const {
  TensorType type{.dtype = dtype, .shape = {n}, .format = format};
  for (const int64_t d : shape.dims()) type.shape.Append(d);
  return type;
}

}  // namespace capstan
