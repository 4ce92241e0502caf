#include "ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using Values = std::vector<double>;

TEST(MatMul, TransposesAndBatches) {
  const Values a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 1, 0, 3};
  for (const auto& kernels : {MatmulReferenceKernels(), MatmulOnednnKernels()}) {
    const auto run = [&](bool ta, bool tb, Shape sa, Shape sb) {
      return RunOp(kMatMul, AnyStruct::Of(MatMulAttrs{ta, tb}), kernels,
                   {Numbers(sa, a, DType::kF32), Numbers(sb, b, DType::kF32)})[0];
    };
    EXPECT_EQ(run(false, false, {2, 3}, {3, 2}), (Values{5, 11, 14, 23}));
    EXPECT_EQ(run(false, true, {2, 3}, {2, 3}), (Values{7, 10, 16, 22}));
    EXPECT_EQ(run(true, false, {2, 3}, {2, 3}), (Values{5, 0, 14, 7, 0, 19, 9, 0, 24}));
    EXPECT_EQ(run(true, true, {3, 2}, {2, 3}), (Values{11, 16, 14, 20}));
    EXPECT_EQ(run(false, false, {3, 1, 2}, {3, 2, 1}), (Values{1, 10, 18}));
  }
}

}  // namespace
}  // namespace capstan
