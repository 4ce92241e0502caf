#include "ops/reshape/reshape.h"

#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

std::string RuleOf(Shape from, std::vector<int64_t> to) {
  OpCall call{.op = &kReshape, .attrs = AnyStruct::Of(ReshapeAttrs{std::move(to)})};
  call.inputs = {TensorType{DType::kF32, from}};
  CHECK_OK(InferCall(call));
  return kReshape.axes.For(call);
}

TEST(Reshape, FactorRules) {
  EXPECT_EQ(RuleOf({8, 3, 4, 5}, {8, 60}),
            "f0 f1 f2! f3! -> f0 (f1 f2! f3!) | shape=[f0 (f1 f2 f3)]");
  EXPECT_EQ(RuleOf({8, 60}, {8, 3, 20}), "f0 (f1 f2!) -> f0 f1 f2! | shape=[f0 f1 f2]");
  EXPECT_EQ(RuleOf({4, 6, 3}, {4, 2, 9}),
            "f0 (f1 f2!) f3! -> f0 f1 (f2! f3!) | shape=[f0 f1 (f2 f3)]");
  EXPECT_EQ(RuleOf({5, 2, 3}, {5, 3, 2}), "f0 w0! w1! -> f0 w2! w3! | shape=[f0 w2 w3]");
  EXPECT_EQ(RuleOf({6, 1}, {1, 6, 1}), "f0 1 -> 1 f0 1 | shape=[1 f0 1]");
  EXPECT_EQ(RuleOf({4, 1, 3}, {12}), "f0 1 f1! -> (f0 f1!) | shape=[(f0 f1)]");
  EXPECT_EQ(RuleOf({1, 1}, {}), "1 1 -> .");
}

TEST(Reshape, KeepsLogicalOrderAcrossMemoryFormats) {
  TestTensor x = Numbers({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  x.type.format = MemoryFormat::kChannelsLast;
  const auto y =
      RunOp(kReshape, AnyStruct::Of(ReshapeAttrs{{1, 6}}), ReshapeReferenceKernels(), {x});
  EXPECT_EQ(y[0], x.values);
}

TEST(Reshape, FillsInTheMissingSize) {
  Graph graph;
  const OpTable ops(ReshapeRows());
  Builder b(&graph, &ops, Mode::kTrain);
  const ValueId x = b.Data("x", {DType::kF32, {4, 3, 2}});
  EXPECT_EQ(b.shape(Reshape(b, x, {2, -1})), Shape({2, 12}));
  EXPECT_EQ(b.shape(Flatten(b, x)), Shape({4, 6}));
  Reshape(b, x, {5, -1});
  EXPECT_FALSE(b.ok());
}

}  // namespace
}  // namespace capstan
