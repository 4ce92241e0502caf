#include "engine/shard/factor_rule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace capstan {
namespace {

struct ConvLike {
  int64_t groups = 1;
  std::vector<int64_t> shape;
  double rate = 0;

  static constexpr auto Fields() {
    return std::array{Field<&ConvLike::groups>("groups", "groups"),
                      Field<&ConvLike::shape>("shape", "sizes"),
                      Field<&ConvLike::rate>("rate", "no size")};
  }
};

constinit const OpDef kTwoOutputs = {
    .name = "two",
    .inputs = {{"x"}, {"w"}, {.name = "more", .variadic = true}},
    .outputs = {{"y"}, {.name = "z", .combine = Combine::kMax}},
    .attrs = &TypeOf<ConvLike>(),
};
constinit const OpDef kOneOutput = {
    .name = "one",
    .inputs = {{"x"}, {"w"}, {.name = "b", .optional = true}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<ConvLike>(),
};

TensorType F32(Shape shape) { return {DType::kF32, shape}; }
TensorType Opaque(int64_t bytes) { return {DType::kOpaque, {bytes}}; }
const std::nullopt_t kAbsent = std::nullopt;

OpCall Call(std::vector<std::optional<TensorType>> inputs, std::vector<TensorType> outputs,
            ConvLike attrs = {}) {
  return {.op = outputs.size() == 1 ? &kOneOutput : &kTwoOutputs,
          .attrs = AnyStruct::Of(std::move(attrs)),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}

// The message in one line.
std::string OneLine(const absl::Status& status) {
  std::string text = MessageOf(status);
  for (size_t at; (at = text.find("\n  ")) != std::string::npos;) text.replace(at, 3, "; ");
  return text;
}

// The sizes and all signatures, a line each; or the error.
std::string Explain(std::string_view rule, const OpCall& call) {
  const auto bound = BoundRule::Of(rule, call);
  if (!bound.ok()) return OneLine(bound.status());
  std::string text = bound->ToString() + "\n";
  for (const Signature& s : bound->Signatures()) text += s.ToString() + "\n";
  return text;
}

std::string PartText(const ArgPart& part) {
  if (part.dim < 0) return "all";
  std::string text = fmt::format("dim {}", part.dim);
  for (const Range& r : part.ranges) text += fmt::format(" [{},+{}]", r.offset, r.length);
  return text;
}

// "in: dim 1 [0,+2], all; out: dim 0 [0,+2]; two(f32[2]){groups=2}"
std::string Part(std::string_view rule, const OpCall& call, std::string_view factor, int64_t offset,
                 int64_t length) {
  const auto bound = BoundRule::Of(rule, call);
  if (!bound.ok()) return OneLine(bound.status());
  const CallPart part = bound->PartOf(bound->Find(factor), offset, length);
  std::string text;
  for (const ArgPart& p : part.inputs) text += PartText(p) + "; ";
  text += "->";
  for (const ArgPart& p : part.outputs) text += " " + PartText(p) + ";";
  text += " " + part.call.ToString() + " ->";
  for (const TensorType& t : part.call.outputs) text += " " + t.ToString();
  return text;
}

TEST(FactorRuleTest, MatMul) {
  EXPECT_EQ(
      Explain("b* m k, b* k n -> b* m n", Call({F32({4, 5, 7}), F32({4, 7, 3})}, {F32({4, 5, 3})})),
      "b*0=4 m=5 k=7, b*0=4 k=7 n=3 -> b*0=4 m=5 n=3\n"
      "b*0: split 0, split 0 -> split 0\n"
      "m: split 1, whole -> split 1\n"
      "k: split 2, split 1 -> sum\n"
      "n: whole, split 2 -> split 2\n");
}

TEST(FactorRuleTest, GroupedConvolutionSolvesProductsFromTheAttribute) {
  const std::string_view rule = "n (g c) h! w!, (g o) c x! y! -> n (g o) p! q! | groups=g";
  const OpCall call =
      Call({F32({8, 6, 9, 9}), F32({4, 3, 3, 3})}, {F32({8, 4, 7, 7})}, {.groups = 2});
  EXPECT_EQ(Explain(rule, call),
            "n=8 (g=2 c=3) h=9 w=9, (g=2 o=2) c=3 x=3 y=3 -> n=8 (g=2 o=2) p=7 q=7\n"
            "n: split 0, whole -> split 0\n"
            "g: split 1, split 0 -> split 1\n"
            "c: split 1 in 2 pieces, split 1 -> sum\n"
            "o: whole, split 0 in 2 pieces -> split 1 in 2 pieces\n");
  EXPECT_EQ(Part(rule, call, "g", 1, 1),
            "dim 1 [3,+3]; dim 0 [2,+2]; -> dim 1 [2,+2]; "
            "one(f32[8,3,9,9], f32[2,3,3,3]) -> f32[8,2,7,7]");
  EXPECT_EQ(Part(rule, call, "c", 1, 2),
            "dim 1 [1,+2] [4,+2]; dim 1 [1,+2]; -> all; "
            "one(f32[8,4,9,9], f32[4,2,3,3]){groups=2} -> f32[8,4,7,7]");
}

TEST(FactorRuleTest, ListAttributesFollow) {
  const OpCall call = Call({F32({4, 3, 2})}, {F32({4, 1, 6})}, {.shape = {4, 1, 6}});
  EXPECT_EQ(Part("n c h -> n 1 (c h) | shape=[n 1 (c h)]", call, "c", 1, 2),
            "dim 1 [1,+2]; -> dim 2 [2,+4]; one(f32[4,2,2]){shape=[4, 1, 4]} -> f32[4,1,4]");
  EXPECT_EQ(Part("n c h -> n 1 (c h) | shape=[n 1 (c h)]", call, "h", 0, 1),
            "dim 2 [0,+1]; -> dim 2 [0,+1] [2,+1] [4,+1]; "
            "one(f32[4,3,1]){shape=[4, 1, 3]} -> f32[4,1,3]");
}

TEST(FactorRuleTest, NoInputs) {
  EXPECT_EQ(Explain("-> a b | shape=[a b]", Call({}, {F32({2, 3})}, {.shape = {2, 3}})),
            "-> a=2 b=3\na: -> split 0\nb: -> split 1\n");
}

TEST(FactorRuleTest, KindsOfOutputs) {
  EXPECT_EQ(Explain("n k, n -> n k, .", Call({F32({4, 2}), F32({4})}, {F32({4, 2}), F32({})})),
            "n=4 k=2, n=4 -> n=4 k=2, .\n"
            "n: split 0, split 0 -> split 0, max\n"
            "k: split 1, whole -> split 1, max\n");
}

TEST(FactorRuleTest, LocalStatisticsForbiddenFactorsAndSizeOne) {
  EXPECT_EQ(Explain("n~ c h!, 1 -> n~ c h!, c",
                    Call({F32({4, 2, 3}), F32({1})}, {F32({4, 2, 3}), F32({2})})),
            "n=4 c=2 h=3, 1 -> n=4 c=2 h=3, c=2\n"
            "n: split 0, whole -> split 0, local\n"
            "c: split 1, whole -> split 1, split 0\n");
}

TEST(FactorRuleTest, ScalarsAbsentAndOpaqueArguments) {
  EXPECT_EQ(Explain("., n, _, ? -> n, ?",
                    Call({F32({}), F32({4}), kAbsent, Opaque(64)}, {F32({4}), Opaque(32)})),
            "., n=4, ., ? -> n=4, ?\n"
            "n: whole, split 0, whole, local -> split 0, local\n");
}

TEST(FactorRuleTest, TrailingAbsentInputsMayBeLeftOut) {
  EXPECT_EQ(Explain("n, n, _ -> n", Call({F32({4}), F32({4})}, {F32({4})})),
            "n=4, n=4 -> n=4\nn: split 0, split 0 -> split 0\n");
  EXPECT_EQ(Explain("n, n -> n", Call({F32({4}), F32({4}), kAbsent}, {F32({4})})),
            "n=4, n=4, . -> n=4\nn: split 0, split 0, whole -> split 0\n");
}

TEST(FactorRuleTest, AnyDimensionsMayBeNone) {
  EXPECT_EQ(Explain("b* d!, d! -> b* d!", Call({F32({3}), F32({3})}, {F32({3})})),
            "d=3, d=3 -> d=3\n");
  EXPECT_EQ(Explain("b*, b* -> b*", Call({F32({}), F32({})}, {F32({})})), "., . -> .\n");
}

TEST(FactorRuleTest, OneRemainingSizeIsEnough) {
  EXPECT_EQ(Explain("(h d!), d! -> h", Call({F32({12}), F32({4})}, {F32({3})})),
            "(h=3 d=4), d=4 -> h=3\nh: split 0, whole -> split 0\n");
  // A product that is used up leaves ones.
  EXPECT_EQ(Explain("(h d), d -> (h d)", Call({F32({1}), F32({1})}, {F32({1})})),
            "(h=1 d=1), d=1 -> (h=1 d=1)\n");
}

TEST(FactorRuleTest, TextsThatAreNoRules) {
  const OpCall call = Call({F32({4}), F32({4})}, {F32({4})});
  EXPECT_EQ(Explain("n, n", call), "expected '->' at ''; while reading the rule 'n, n'");
  EXPECT_EQ(Explain("n, (n -> n", call),
            "expected ')' at '-> n'; while reading the rule 'n, (n -> n'");
  EXPECT_EQ(Explain("n, -> n", call),
            "expected a dimension at '-> n'; while reading the rule 'n, -> n'");
  EXPECT_EQ(Explain("N, n -> n", call),
            "expected a dimension at 'N, n -> n'; while reading the rule 'N, n -> n'");
  EXPECT_EQ(Explain("n, n -> n | groups", call),
            "expected '=' at ''; while reading the rule 'n, n -> n | groups'");
  EXPECT_EQ(Explain("n, n -> n |", call),
            "expected a name at ''; while reading the rule 'n, n -> n |'");
}

TEST(FactorRuleTest, RulesThatDoNotFit) {
  const OpCall call = Call({F32({4}), F32({5})}, {F32({4})});
  const std::string to = " to one(f32[4], f32[5])";
  EXPECT_EQ(
      Explain("n, n -> n", call),
      "dimension 0 of 'w' is 5 but the rule says n=4; while fitting the rule 'n, n -> n'" + to);
  EXPECT_EQ(Explain("n, m k -> n", call),
            "1 dimensions, the rule has 2; while binding 'w', f32[5]; while fitting the rule "
            "'n, m k -> n'" +
                to);
  EXPECT_EQ(Explain("n, m -> n, n", call),
            "the rule has 2 outputs, the call 1; while fitting the rule 'n, m -> n, n'" + to);
  EXPECT_EQ(Explain("n, m, n -> n", call),
            "input 2 is absent in the call but given in the rule; while fitting the rule "
            "'n, m, n -> n'" +
                to);
  EXPECT_EQ(Explain("n, ? -> n", call),
            "'w' is f32[5]; opaque arguments, and only they, are '?'; while fitting the rule "
            "'n, ? -> n'" +
                to);
  EXPECT_EQ(Explain("(n k), m -> (n k)", call),
            "cannot tell the size of factor 'n'; bind an attribute to it; while fitting the rule "
            "'(n k), m -> (n k)'" +
                to);
  EXPECT_EQ(Explain("(n g), m -> (n g) | groups=(g m)", call),
            "attribute 'groups' is 1, no multiple of 5; while fitting the rule '(n g), m -> (n g) "
            "| groups=(g m)'" +
                to);
  EXPECT_EQ(Explain("n, m -> n | rate=n", call),
            "attribute 'rate' is not an integer; while fitting the rule 'n, m -> n | rate=n'" + to);
  EXPECT_EQ(Explain("n, m -> n | size=n", call),
            "there is no attribute 'size'; while fitting the rule 'n, m -> n | size=n'" + to);
  EXPECT_EQ(Explain("n!, m -> n~", call),
            "factor 'n' is marked both '!' and '~'; while binding 'y', f32[4]; while fitting the "
            "rule 'n!, m -> n~'" +
                to);
}

TEST(FactorRuleTest, DiagonalsCannotBeCut) {
  const OpCall call = Call({F32({4, 4})}, {F32({4})});
  EXPECT_EQ(Explain("n n -> n", call),
            "factor 'n' is twice in one argument; mark it '!'; while fitting the rule 'n n -> n' "
            "to one(f32[4,4])");
  EXPECT_EQ(Explain("n! n! -> n!", call), "n=4 n=4 -> n=4\n");
}

TEST(FactorRuleTest, AnyDimensionsMustAgree) {
  EXPECT_EQ(Explain("b*, b* -> b*", Call({F32({4}), F32({4, 1})}, {F32({4})})),
            "'b*' is 2 dimensions here but 1 elsewhere; while binding 'w', f32[4,1]; while fitting "
            "the rule 'b*, b* -> b*' to one(f32[4], f32[4,1])");
}

}  // namespace
}  // namespace capstan
