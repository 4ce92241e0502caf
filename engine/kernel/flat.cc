#include "engine/kernel/flat.h"

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

}  // namespace capstan
