// Clips every gradient of a bucket to a norm of its own (Paddle's ClipGradByNorm):
//   y = g * max_norm / max(|g|, max_norm), |g| the norm of the tensor that the element belongs to.
// Segment i of the bucket is [segment_ends[i - 1], segment_ends[i]) (from 0); padding at its end
// holds zeros, which change no norm.
//
//   clip_segments(g){segment_ends=[16, 4112], max_norm=1}
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct ClipSegmentsAttrs {
  std::vector<int64_t> segment_ends;
  double max_norm = 1;

  static constexpr auto Fields() {
    return std::array{Field<&ClipSegmentsAttrs::segment_ends>(
                          "segment_ends", "where each tensor ends, in elements"),
                      Field<&ClipSegmentsAttrs::max_norm>("max_norm", "largest norm of a tensor")};
  }
};

extern const OpDef kClipSegments;

std::vector<const OpDef*> ClipSegmentsRows();
std::vector<KernelRow> ClipSegmentsReferenceKernels();
std::vector<KernelRow> ClipSegmentsFastKernels();

}  // namespace capstan
