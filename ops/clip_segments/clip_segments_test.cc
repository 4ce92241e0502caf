#include "ops/clip_segments/clip_segments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

// Norms 5, 1 and 0 under a limit of 2: the first is scaled by 0.4, the others stay.
TEST(ClipSegments, EachTensorHasItsOwnNorm) {
  const AnyStruct attrs =
      AnyStruct::Of(ClipSegmentsAttrs{.segment_ends = {3, 5, 7}, .max_norm = 2});
  const TestTensor g = Numbers({7}, {3, 4, 0, 0, -1, 0, 0}, DType::kF32);
  for (const auto& kernels : {ClipSegmentsReferenceKernels(), ClipSegmentsFastKernels()}) {
    const std::vector<double> y = RunOp(kClipSegments, attrs, kernels, {g})[0];
    EXPECT_NEAR(y[0], 1.2, 1e-7);
    EXPECT_NEAR(y[1], 1.6, 1e-7);
    EXPECT_EQ((std::vector<double>(y.begin() + 2, y.end())), (std::vector<double>{0, 0, -1, 0, 0}));
  }
}

// A tensor that is not finite says so, and leaves the others alone.
TEST(ClipSegments, NanStaysInItsTensor) {
  const AnyStruct attrs = AnyStruct::Of(ClipSegmentsAttrs{.segment_ends = {2, 3}, .max_norm = 1});
  const TestTensor g = Numbers({3}, {NAN, 1, 2}, DType::kF32);
  for (const auto& kernels : {ClipSegmentsReferenceKernels(), ClipSegmentsFastKernels()}) {
    const std::vector<double> y = RunOp(kClipSegments, attrs, kernels, {g})[0];
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
    EXPECT_EQ(y[2], 1);
  }
}

}  // namespace
}  // namespace capstan
