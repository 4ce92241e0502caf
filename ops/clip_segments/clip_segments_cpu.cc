// Reference kernel.
#include <algorithm>
#include <cmath>

#include "engine/kernel/strided.h"
#include "ops/clip_segments/clip_segments.h"

namespace capstan {
namespace {

void ClipSegmentsKernel(KernelContext&, std::span<const TensorView> outputs,
                        std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClipSegmentsAttrs>();
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* g = inputs[0].Data<T>();
    T* y = outputs[0].Data<T>();
    int64_t begin = 0;
    for (const int64_t end : attrs.segment_ends) {
      double squares = 0;
      for (int64_t i = begin; i < end; ++i) squares += double(g[i]) * double(g[i]);
      // In this order max gives a NaN norm.
      const T scale = static_cast<T>(attrs.max_norm / std::max(std::sqrt(squares), attrs.max_norm));
      for (int64_t i = begin; i < end; ++i) y[i] = g[i] * scale;
      begin = end;
    }
  });
}

}  // namespace

std::vector<KernelRow> ClipSegmentsReferenceKernels() {
  return {{.op = "clip_segments", .fn = ClipSegmentsKernel}};
}

}  // namespace capstan
