#include "engine/kernel/flat.h"

#include <algorithm>

namespace capstan {

bool InOneOrder(const OpCall& call) {
  const TensorType& y = call.Out(0);
  const auto fits = [&](const TensorType& t) { return t.shape != y.shape || SameOrder(t, y); };
  for (const auto& in : call.inputs) {
    if (in.has_value() && !fits(*in)) return false;
  }
  for (const TensorType& out : call.outputs) {
    if (!fits(out)) return false;
  }
  return true;
}

bool IsChannelsLast(const TensorType& type) {
  TensorType last = type;
  last.format = MemoryFormat::kChannelsLast;
  return SameOrder(type, last);
}

bool ImagesAreChannelsLast(const OpCall& call) {
  const auto fits = [](const TensorType& t) { return t.ndim() != 4 || IsChannelsLast(t); };
  for (const auto& in : call.inputs) {
    if (in.has_value() && !fits(*in)) return false;
  }
  return std::all_of(call.outputs.begin(), call.outputs.end(), fits);
}

}  // namespace capstan
