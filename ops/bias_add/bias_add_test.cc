#include "ops/bias_add/bias_add.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/random.h"
#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using Values = std::vector<double>;

TestTensor Random(TensorType type, uint64_t seed, double mean = 0) {
  Values values;
  for (int64_t i = 0; i < type.count(); ++i) {
    values.push_back(mean + RandomKey(seed).Normal(static_cast<uint64_t>(i)));
  }
  return {type, std::move(values)};
}

TEST(BiasAdd, ClosedForm) {
  const AnyStruct axis1 = AnyStruct::Of(BiasAddAttrs{.axis = 1});
  const TestTensor x = Numbers({1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(RunOp(kBiasAdd, axis1, BiasAddReferenceKernels(), {x, Numbers({2}, {10, 20})})[0],
            (Values{11, 12, 23, 24}));
  EXPECT_EQ(RunOp(kBiasAddGrad, axis1, BiasAddReferenceKernels(), {x})[0], (Values{3, 7}));
  const AnyStruct last = AnyStruct::Of(BiasAddAttrs{.axis = -1});
  EXPECT_EQ(RunOp(kBiasAddGrad, last, BiasAddReferenceKernels(), {x})[0], (Values{4, 6}));
}

TEST(BiasAdd, FastLikeReferenceAndAlikeOnAllThreads) {
  const TensorType image = {DType::kF32, {3, 37, 20, 11}, MemoryFormat::kChannelsLast};
  for (const auto& [type, axis] :
       {std::pair(image, 1), {TensorType{DType::kF32, {2000, 37}}, -1}}) {
    const AnyStruct attrs = AnyStruct::Of(BiasAddAttrs{.axis = axis});
    const TestTensor x = Random(type, 1, 3), bias = Random({DType::kF32, {37}}, 2);
    EXPECT_EQ(RunOp(kBiasAdd, attrs, BiasAddFastKernels(), {x, bias}, 2),
              RunOp(kBiasAdd, attrs, BiasAddReferenceKernels(), {x, bias}));
    const Values sums = RunOp(kBiasAddGrad, attrs, BiasAddReferenceKernels(), {x})[0];
    const Values fast = RunOp(kBiasAddGrad, attrs, BiasAddFastKernels(), {x})[0];
    for (size_t c = 0; c < sums.size(); ++c)
      EXPECT_NEAR(fast[c], sums[c], 1e-5 * std::abs(sums[c]));
    EXPECT_EQ(RunOp(kBiasAddGrad, attrs, BiasAddFastKernels(), {x}, 3)[0], fast);
  }
}

}  // namespace
}  // namespace capstan
