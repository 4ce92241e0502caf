// Graph, builder, text form and verifier, over three rows of this test's own.
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/ir/builder.h"
#include "engine/ir/module.h"
#include "engine/ir/text.h"
#include "engine/ir/verify.h"

namespace capstan {
namespace {

struct StepAttrs {
  double size = 1;
  std::vector<int64_t> axes;
  static constexpr auto Fields() {
    return std::array{Field<&StepAttrs::size>("size", "of a step"),
                      Field<&StepAttrs::axes>("axes", "along which")};
  }
};

absl::Status InferJoin(OpCall& call) {
  if (call.In(0).shape != call.In(1).shape) return InvalidArgument("shapes differ");
  return InferLikeInput0(call);
}

constinit const OpDef kStep = {.name = "step",
                               .doc = "y = x + size",
                               .inputs = {{"x"}},
                               .outputs = {{"y"}},
                               .attrs = &TypeOf<StepAttrs>(),
                               .infer = InferLikeInput0,
                               .grad = kNoGrad,
                               .axes = {.text = "b* -> b*"},
                               .cost = ElementwiseCost<1>};
constinit const OpDef kJoin = {.name = "join",
                               .doc = "y = a + b",
                               .inputs = {{"a"}, {"b", DTypeClass::kFloat, true}},
                               .outputs = {{"y"}},
                               .attrs = &TypeOf<NoAttrs>(),
                               .infer = InferJoin,
                               .grad = kNoGrad,
                               .axes = {.text = "b*, b* -> b*"},
                               .cost = ElementwiseCost<1>};
constinit const OpDef kImageStep = {.name = "image_step",
                                    .doc = "y = x",
                                    .inputs = {{"x"}},
                                    .outputs = {{"y"}},
                                    .attrs = &TypeOf<NoAttrs>(),
                                    .infer = InferLikeInput0,
                                    .grad = kNoGrad,
                                    .axes = {.text = "b* -> b*"},
                                    .cost = ElementwiseCost<1>,
                                    .traits = {.layout = LayoutNeed::kImage}};

OpTable TestOps() {
  const OpDef* rows[] = {&kStep, &kJoin, &kImageStep};
  return OpTable(rows);
}

constexpr char kText[] = R"(graph micro {
  %0 = data image : f32[2,3]
  %1 = param a.weight : f32[2,3] role=norm init={kind=normal, value=0.1}
  %2 = state a.mean : f32[2,3] init={}
  %3 = step(%0){size=0.5, axes=[1, 0]} : f32[2,3] @a/step
  %4 = join(%3, %1){} : f32[2,3] @a from differentiate
  update %2 = %4
  output loss = %4
}
)";

absl::StatusOr<Graph> Parse(std::string_view text) {
  static const OpTable ops = TestOps();
  return ParseGraph(&text, ops, "test.txt");
}

TEST(Text, PrintingAndParsingGiveTheSameText) {
  const auto graph = Parse(kText);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph), kText);
  EXPECT_TRUE(VerifyGraph(*graph, Stage::kDifferentiated).ok());
}

TEST(Text, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"graph g {\n  %0 = data x : f32[2]\n  %1 = setp(%0){} : f32[2]\n}\n",
       "test.txt:3: unknown operator 'setp'; did you mean 'step'?"},
      {"graph g {\n  %1 = step(%0){} : f32[2]\n}\n", "test.txt:2: %0 is used before it is made"},
      {"graph g {\n  %0 = data x : f32[2]\n", "ends before its closing"},
      {"graph g {\n  %0 = data x : f32[2]\n  %0 = step(%0){} : f32[2]\n}\n", "made twice"},
      {"graph g {\n  %0 = data x : f33[2]\n}\n", "line 2"},
      {"graph g {\n  %0 = data x : f32[2]\n  %1 = step(%0){colour=1} : f32[2]\n}\n", "colour"},
      {"hello", "expected `graph NAME {`"},
  };
  for (const auto& [text, expected] : cases) {
    const auto graph = Parse(text);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_NE(MessageOf(graph.status()).find(expected), std::string::npos)
        << MessageOf(graph.status());
  }
}

TEST(Verify, FindsWhatIsBroken) {
  const std::pair<const char*, const char*> cases[] = {
      {"graph g {\n  %0 = data x : f32[2]\n  %1 = step(%0){} : f32[3]\n}\n", "infer gives"},
      {"graph g {\n  %0 = data x : f32[2]\n  %1 = step(%0){} : f32[2]\n  update %0 = %1\n}\n",
       "not persistent"},
      {"graph g {\n  %0 = data x : f32[2]\n  %1 = data x : f32[2]\n}\n", "two inputs"},
      {"graph g {\n  %0 = data x : f32[2,1,1,1]\n"
       "  %1 = step(%0){} : f32[2,1,1,1]{channels_last}\n}\n",
       "before the layout pass"},
  };
  for (const auto& [text, expected] : cases) {
    const auto graph = Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::Status status = VerifyGraph(*graph, Stage::kLogical);
    EXPECT_NE(MessageOf(status).find(expected), std::string::npos) << status;
  }
}

TEST(Verify, ImageRowsNeedChannelsLastOnceLowered) {
  const auto graph =
      Parse("graph g {\n  %0 = data x : f32[2,1,1,1]\n  %1 = image_step(%0){} : f32[2,1,1,1]\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(VerifyGraph(*graph, Stage::kLogical).ok());
  EXPECT_FALSE(VerifyGraph(*graph, Stage::kLowered).ok());
}

TEST(Graph, CompactOrdersAndDropsWhatIsErased) {
  auto graph = Parse(kText);
  ASSERT_TRUE(graph.ok());
  // A node added at the end that an earlier one comes to read.
  const NodeId late =
      graph->AddNode(kStep, AnyStruct::Of(StepAttrs{.size = 9}), {0}, {graph->type(0)}, "", "test");
  graph->ReplaceAllUses(3, graph->node(late).outputs[0]);
  graph->Erase(0);
  graph->Compact();
  EXPECT_TRUE(VerifyGraph(*graph, Stage::kDifferentiated).ok());
  ASSERT_EQ(graph->nodes().size(), 2u);
  EXPECT_EQ(graph->node(0).origin, "test");
}

TEST(Builder, NamesParametersByScopeAndKeepsTheFirstError) {
  const OpTable ops = TestOps();
  Graph graph;
  Builder b(&graph, &ops, Mode::kTrain);
  const ValueId x = b.Data("x", {DType::kF32, {2}});
  auto outer = b.Enter("layer1");
  auto inner = b.Enter(0);
  const ValueId w = b.Param("weight", {3}, Role::kWeight, Normal(1));
  EXPECT_EQ(graph.inputs().back().name, "layer1.0.weight");
  EXPECT_EQ(b.Add1(kJoin, {}, {x, w}), kNoValue);
  EXPECT_EQ(b.Add1(kJoin, {}, {kNoValue}), kNoValue);
  const std::string message = MessageOf(b.status());
  EXPECT_NE(message.find("join(f32[2], f32[3]): shapes differ"), std::string::npos) << message;
  EXPECT_NE(message.find("while building 'layer1/0'"), std::string::npos) << message;
}

TEST(Builder, RandomStreamsDiffer) {
  const OpTable ops = TestOps();
  Graph graph;
  Builder b(&graph, &ops, Mode::kTrain);
  auto scope = b.Enter("drop");
  EXPECT_EQ(b.NewStream(), "drop");
  EXPECT_EQ(b.NewStream(), "drop#1");
}

TEST(Module, SlotNames) {
  EXPECT_EQ(SlotName("a.weight", "grad"), "a.weight@grad");
  EXPECT_EQ(SlotOwner("a.weight@grad"), "a.weight");
  EXPECT_EQ(SlotOwner("a.weight"), "a.weight");
}

}  // namespace
}  // namespace capstan
