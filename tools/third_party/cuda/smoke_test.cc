#include "tools/third_party/cuda/smoke.h"

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(Cuda, ComputesOnTheGpu) { EXPECT_EQ(TwiceOnGpu(21), 42); }

}  // namespace
}  // namespace capstan
