#include "ops/batch_norm/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/random.h"
#include "engine/ir/text.h"
#include "ops/add/add.h"
#include "ops/relu/relu.h"
#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using Values = std::vector<double>;
using Results = std::vector<Values>;

TestTensor Random(TensorType type, uint64_t seed, double mean = 0) {
  Values values;
  for (int64_t i = 0; i < type.count(); ++i) {
    values.push_back(mean + RandomKey(seed).Normal(static_cast<uint64_t>(i)));
  }
  return {type, std::move(values)};
}

void ExpectNear(const Values& a, const Values& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

void ExpectNear(const Results& a, const Results& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectNear(a[i], b[i], tolerance);
  }
}

// torch.nn.BatchNorm1d's rules for (1, 2, 3, 6): mean 3, biased variance 3.5, unbiased 14/3.
TEST(BatchNorm, ClosedForm) {
  const AnyStruct attrs = AnyStruct::Of(BatchNormAttrs{.momentum = 0.75, .epsilon = 0.5});
  const Results out = RunOp(kBatchNorm, attrs, BatchNormReferenceKernels(),
                            {Numbers({4, 1}, {1, 2, 3, 6}), Numbers({1}, {4}), Numbers({1}, {1}),
                             Numbers({1}, {8}), Numbers({1}, {2})});
  ExpectNear(out, {{-3, -1, 1, 7}, {3}, {0.5}, {6.75}, {1.5 + 14.0 / 12}}, 1e-12);
}

std::vector<TestTensor> TrainingInputs(TensorType image, double mean) {
  const TensorType c = {image.dtype, {image.shape[1]}};
  return {Random(image, 1, mean), Random(c, 2), Random(c, 3), Random(c, 4), Random(c, 5, 5)};
}

constexpr MemoryFormat kLast = MemoryFormat::kChannelsLast;

TEST(BatchNorm, LargeMeanLosesNothing) {
  const TensorType image = {DType::kF32, {4, 5, 16, 16}, kLast};
  const std::vector<TestTensor> inputs = TrainingInputs(image, 1e4);
  std::vector<TestTensor> rounded = inputs;
  for (TestTensor& t : rounded) {
    t.type.dtype = DType::kF64;
    for (double& v : t.values) v = double(float(v));
  }
  const Results exact = RunOp(kBatchNorm, {}, BatchNormReferenceKernels(), rounded);
  for (const auto& kernels : {BatchNormReferenceKernels(), BatchNormFastKernels()}) {
    const Results out = RunOp(kBatchNorm, {}, kernels, inputs);
    ExpectNear(out[0], exact[0], 2e-6 * 4);
    ExpectNear(out[2], exact[2], 1e-6);
    ExpectNear(out[4], exact[4], 1e-5);
  }
}

TEST(BatchNorm, FastLikeReferenceAndAlikeOnAllThreads) {
  for (const TensorType& image :
       {TensorType{DType::kF32, {3, 37, 20, 11}, kLast}, TensorType{DType::kF32, {600, 20}}}) {
    for (const bool relu : {false, true}) {
      std::vector<TestTensor> inputs = TrainingInputs(image, 2);
      if (relu) inputs.push_back(Random(image, 6));
      const AnyStruct attrs = AnyStruct::Of(BatchNormAttrs{.relu = relu});
      const Results expected = RunOp(kBatchNorm, attrs, BatchNormReferenceKernels(), inputs);
      const Results fast = RunOp(kBatchNorm, attrs, BatchNormFastKernels(), inputs);
      ExpectNear(fast, expected, 3e-6);
      EXPECT_EQ(RunOp(kBatchNorm, attrs, BatchNormFastKernels(), inputs, 3), fast);

      const AnyStruct inference = AnyStruct::Of(BatchNormInferenceAttrs{.relu = relu});
      ExpectNear(RunOp(kBatchNormInference, inference, BatchNormFastKernels(), inputs, 2),
                 RunOp(kBatchNormInference, inference, BatchNormReferenceKernels(), inputs), 3e-6);

      const TensorType c = {DType::kF32, {image.shape[1]}};
      std::vector<TestTensor> backward = {
          Random(image, 7), inputs[0], inputs[1], {c, expected[1]}, {c, expected[2]}};
      if (relu) backward.push_back({image, expected[0]});
      const AnyStruct grad = AnyStruct::Of(BatchNormGradAttrs{.relu = relu});
      const Results dx = RunOp(kBatchNormGrad, grad, BatchNormFastKernels(), backward);
      ExpectNear(dx, RunOp(kBatchNormGrad, grad, BatchNormReferenceKernels(), backward), 1e-4);
      EXPECT_EQ(RunOp(kBatchNormGrad, grad, BatchNormFastKernels(), backward, 3), dx);

      backward.resize(5);
      backward[4] = inputs[4];
      ExpectNear(RunOp(kBatchNormInferenceGrad, {}, BatchNormFastKernels(), backward),
                 RunOp(kBatchNormInferenceGrad, {}, BatchNormReferenceKernels(), backward), 1e-4);
    }
  }
}

// Samples [begin, end) of an image tensor.
TestTensor Slice(const TestTensor& t, int64_t begin, int64_t end) {
  Shape shape = t.type.shape;
  shape[0] = end - begin;
  const int64_t each = shape.count() / shape[0];
  return Numbers(shape, {t.values.begin() + begin * each, t.values.begin() + end * each});
}

Values Sum(const Values& a, const Values& b) {
  Values sum = a;
  for (size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
  return sum;
}

Values Join(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Results Ref(const OpDef& op, AnyStruct attrs, const std::vector<TestTensor>& inputs) {
  return RunOp(op, std::move(attrs), BatchNormReferenceKernels(), inputs);
}

// Two slices with added sums are the whole: stats = global.
TEST(BatchNorm, PartsAreTheWhole) {
  const Shape shape = {5, 3, 2, 4}, c = {3};
  std::vector<TestTensor> in = TrainingInputs({DType::kF64, shape}, 2);
  in.push_back(Random({DType::kF64, shape}, 6));
  const AnyStruct part = AnyStruct::Of(BatchNormPartAttrs{.relu = true});
  const Results whole = Ref(
      kBatchNorm, AnyStruct::Of(BatchNormAttrs{.stats = BatchStats::kGlobal, .relu = true}), in);
  const TestTensor x0 = Slice(in[0], 0, 2), x1 = Slice(in[0], 2, 5);
  const Results s0 = Ref(kBatchNormStats, {}, {x0}), s1 = Ref(kBatchNormStats, {}, {x1});
  const TestTensor count = Numbers(c, Sum(s0[0], s1[0]));
  const Results moments =
      Ref(kBatchNormMoments, {},
          {in[3], in[4], count, Numbers(c, Sum(s0[1], s1[1])), Numbers(c, Sum(s0[2], s1[2]))});
  ExpectNear(moments, {whole[1], whole[2], whole[3], whole[4]}, 1e-12);
  const TestTensor mean = Numbers(c, moments[0]), invstd = Numbers(c, moments[1]);
  const Values y0 =
      Ref(kBatchNormApply, part, {x0, in[1], in[2], mean, invstd, Slice(in[5], 0, 2)})[0];
  const Values y1 =
      Ref(kBatchNormApply, part, {x1, in[1], in[2], mean, invstd, Slice(in[5], 2, 5)})[0];
  ExpectNear(Join(y0, y1), whole[0], 1e-12);

  const TestTensor dy = Random({DType::kF64, shape}, 7), y = Numbers(shape, whole[0]);
  const Results grad = Ref(
      kBatchNormGrad, AnyStruct::Of(BatchNormGradAttrs{.stats = BatchStats::kGlobal, .relu = true}),
      {dy, in[0], in[1], mean, invstd, y});
  const TestTensor dy0 = Slice(dy, 0, 2), dy1 = Slice(dy, 2, 5);
  const TestTensor r0 = Slice(y, 0, 2), r1 = Slice(y, 2, 5);
  const Results g0 = Ref(kBatchNormGradStats, part, {dy0, x0, mean, invstd, r0});
  const Results g1 = Ref(kBatchNormGradStats, part, {dy1, x1, mean, invstd, r1});
  const TestTensor sum_dy = Numbers(c, Sum(g0[0], g1[0])), sum_xhat = Numbers(c, Sum(g0[1], g1[1]));
  ExpectNear({sum_xhat.values, sum_dy.values}, {grad[1], grad[2]}, 1e-11);
  const auto apply = [&](const TestTensor& dy_part, const TestTensor& x, const TestTensor& y_part) {
    return Ref(kBatchNormGradApply, part,
               {dy_part, x, in[1], mean, invstd, count, sum_dy, sum_xhat, y_part})[0];
  };
  ExpectNear(Join(apply(dy0, x0, r0), apply(dy1, x1, r1)), grad[0], 1e-12);
}

OpTable Table() {
  std::vector<const OpDef*> rows = BatchNormRows();
  for (const auto& more : {ReluRows(), AddRows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return OpTable(rows);
}

// Outputs and updates of a graph whose inputs are drawn at random.
Results Evaluate(const Graph& graph) {
  std::vector<KernelRow> kernels = BatchNormReferenceKernels();
  for (const auto& more : {ReluReferenceKernels(), AddReferenceKernels()}) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  Results values(graph.values().size());
  for (const GraphInput& in : graph.inputs()) {
    values[size_t(in.value)] = Random(graph.type(in.value), HashText(in.name), 2).values;
  }
  for (const Node& node : graph.nodes()) {
    std::vector<TestTensor> inputs;
    for (const ValueId v : node.inputs) inputs.push_back({graph.type(v), values[size_t(v)]});
    const Results made = RunOp(*node.op, node.attrs, kernels, inputs);
    for (size_t i = 0; i < made.size(); ++i) values[size_t(node.outputs[i])] = made[i];
  }
  Results results;
  for (const GraphOutput& o : graph.outputs()) results.push_back(values[size_t(o.value)]);
  for (const StateUpdate& u : graph.updates()) results.push_back(values[size_t(u.value)]);
  return results;
}

// Applies the rows' rewrites until none fits; the numbers stay.
std::string Fused(std::string_view text) {
  const OpTable table = Table();
  auto graph = ParseGraph(&text, table, "test");
  CHECK_OK(graph);
  const Results before = Evaluate(*graph);
  for (bool changed = true; changed;) {
    changed = false;
    for (const OpDef* op : table.rows()) {
      for (const Rewrite& rewrite : op->rewrites) {
        for (NodeId id = 0; id < static_cast<NodeId>(graph->nodes().size()); ++id) {
          const OpDef* root = graph->node(id).op;
          if (root == nullptr || std::string_view(root->name) != rewrite.root) continue;
          changed = rewrite.apply(*graph, id) || changed;
        }
      }
    }
    graph->Compact();
  }
  ExpectNear(Evaluate(*graph), before, 1e-12);
  return PrintGraph(*graph);
}

constexpr std::string_view kInputs = R"(graph g {
  %0 = data x : f64[2,3,4,4]
  %1 = data r : f64[2,3,4,4]
  %2 = data dy : f64[2,3,4,4]
  %3 = param weight : f64[3] role=norm init={value=1}
  %4 = param bias : f64[3] role=norm init={}
  %5 = state running_mean : f64[3] init={}
  %6 = state running_var : f64[3] init={value=1}
)";

TEST(BatchNorm, FusesReluBothWays) {
  EXPECT_EQ(
      Fused(std::string(kInputs) + R"(
  %7, %8, %9, %10, %11 = batch_norm(%0, %3, %4, %5, %6){} : f64[2,3,4,4], f64[3], f64[3], f64[3], f64[3] @bn1
  %12 = relu(%7){} : f64[2,3,4,4]
  %13 = relu_grad(%12, %2){} : f64[2,3,4,4] from differentiate
  %14, %15, %16 = batch_norm_grad(%13, %0, %3, %8, %9){} : f64[2,3,4,4], f64[3], f64[3] @bn1 from differentiate
  output y = %12
  output dx = %14
  output dscale = %15
  update %5 = %10
  update %6 = %11
})"),
      std::string(kInputs) +
          R"(  %7, %8, %9, %10, %11 = batch_norm(%0, %3, %4, %5, %6){relu=true} : f64[2,3,4,4], f64[3], f64[3], f64[3], f64[3] @bn1 from fuse
  %12, %13, %14 = batch_norm_grad(%2, %0, %3, %8, %9, %7){relu=true} : f64[2,3,4,4], f64[3], f64[3] @bn1 from fuse
  update %5 = %10
  update %6 = %11
  output y = %7
  output dx = %12
  output dscale = %13
}
)");
}

// The shortcut may stand on either side of the sum; relu's gradient also goes to the shortcut.
TEST(BatchNorm, FusesShortcutAndRelu) {
  for (const char* terms : {"%7, %1", "%1, %7"}) {
    EXPECT_EQ(
        Fused(std::string(kInputs) + R"(
  %7, %8, %9, %10, %11 = batch_norm(%0, %3, %4, %5, %6){momentum=0.5} : f64[2,3,4,4], f64[3], f64[3], f64[3], f64[3] @bn1
  %12 = add()" +
              terms + R"(){} : f64[2,3,4,4]
  %13 = relu(%12){} : f64[2,3,4,4]
  %14 = relu_grad(%13, %2){} : f64[2,3,4,4] from differentiate
  %15, %16, %17 = batch_norm_grad(%14, %0, %3, %8, %9){} : f64[2,3,4,4], f64[3], f64[3] @bn1 from differentiate
  output y = %13
  output dx = %15
  output dr = %14
})"),
        std::string(kInputs) +
            R"(  %7, %8, %9, %10, %11 = batch_norm(%0, %3, %4, %5, %6, %1){momentum=0.5, relu=true} : f64[2,3,4,4], f64[3], f64[3], f64[3], f64[3] @bn1 from fuse
  %12 = relu_grad(%7, %2){} : f64[2,3,4,4] from differentiate
  %13, %14, %15 = batch_norm_grad(%12, %0, %3, %8, %9){} : f64[2,3,4,4], f64[3], f64[3] @bn1 from differentiate
  output y = %7
  output dx = %13
  output dr = %12
}
)");
  }
}

TEST(BatchNorm, FusesIntoInference) {
  EXPECT_EQ(
      Fused(std::string(kInputs) + R"(
  %7 = batch_norm_inference(%0, %3, %4, %5, %6){} : f64[2,3,4,4] @bn1
  %8 = relu(%7){} : f64[2,3,4,4]
  %9 = batch_norm_inference(%8, %3, %4, %5, %6){} : f64[2,3,4,4] @bn2
  %10 = add(%1, %9){} : f64[2,3,4,4]
  %11 = relu(%10){} : f64[2,3,4,4]
  output y = %11
})"),
      std::string(kInputs) +
          R"(  %7 = batch_norm_inference(%0, %3, %4, %5, %6){relu=true} : f64[2,3,4,4] @bn1 from fuse
  %8 = batch_norm_inference(%7, %3, %4, %5, %6, %1){relu=true} : f64[2,3,4,4] @bn2 from fuse
  output y = %8
}
)");
}

// A result that somebody else reads stays; so does a sum whose other term needs the batch norm.
TEST(BatchNorm, LeavesOtherUsersAlone) {
  const std::string shared =
      std::string(kInputs) +
      R"(  %7 = batch_norm_inference(%0, %3, %4, %5, %6){} : f64[2,3,4,4] @bn1
  %8 = relu(%7){} : f64[2,3,4,4]
  output y = %8
  output before = %7
}
)";
  EXPECT_EQ(Fused(shared), shared);
  const std::string circular =
      std::string(kInputs) +
      R"(  %7, %8, %9, %10, %11 = batch_norm(%0, %3, %4, %5, %6){} : f64[2,3,4,4], f64[3], f64[3], f64[3], f64[3] @bn1
  %12 = batch_norm_inference(%1, %3, %4, %8, %9){relu=true} : f64[2,3,4,4] @bn2
  %13 = add(%7, %12){} : f64[2,3,4,4]
  %14 = relu(%13){} : f64[2,3,4,4]
  output y = %14
}
)";
  EXPECT_EQ(Fused(circular), circular);
}

TEST(BatchNorm, BuilderNamesLikeTorchvision) {
  const OpTable table = Table();
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    Graph graph;
    Builder b(&graph, &table, mode);
    const ValueId x = b.Data("image", {DType::kF32, {2, 3, 4, 4}});
    {
      auto scope = b.Enter("bn1");
      BatchNorm(b, x, {.scale = Constant(0)});
    }
    ASSERT_TRUE(b.ok()) << b.status();
    for (const char* name : {"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"}) {
      EXPECT_NE(graph.FindInput(name), nullptr) << name;
    }
    EXPECT_EQ(graph.FindInput("bn1.weight")->init.value, 0);
    EXPECT_EQ(graph.updates().size(), mode == Mode::kTrain ? 2u : 0u);
  }
}

}  // namespace
}  // namespace capstan
