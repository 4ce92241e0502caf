// Vectorised kernel: threads share the segments, so that no sum depends on their number.
#include <algorithm>
#include <cmath>

#include "ops/clip_segments/clip_segments.h"

namespace capstan {
namespace {

void ClipSegment(const float* g, int64_t count, double max_norm, float* y) {
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < count; ++i) squares += double(g[i]) * double(g[i]);
  // In this order max gives a NaN norm.
  const auto scale = static_cast<float>(max_norm / std::max(std::sqrt(squares), max_norm));
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = g[i] * scale;
}

void ClipSegmentsKernel(KernelContext& context, std::span<const TensorView> outputs,
                        std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<ClipSegmentsAttrs>();
  const float* g = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  const std::vector<int64_t>& ends = attrs.segment_ends;
  ParallelFor(context, static_cast<int64_t>(ends.size()), 1, [&](int64_t first, int64_t last) {
    for (auto s = static_cast<size_t>(first); s < static_cast<size_t>(last); ++s) {
      const int64_t begin = s == 0 ? 0 : ends[s - 1];
      ClipSegment(g + begin, ends[s] - begin, attrs.max_norm, y + begin);
    }
  });
}

}  // namespace

std::vector<KernelRow> ClipSegmentsFastKernels() {
  return {{.op = "clip_segments",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .fn = ClipSegmentsKernel}};
}

}  // namespace capstan
