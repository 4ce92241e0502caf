#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/base/random.h"
#include "engine/base/reflect.h"
#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

enum class Mode { kLocal, kGlobal };
constexpr std::array<const char*, 2> EnumNamesOf(Mode) { return {"local", "global"}; }

struct Inner {
  std::string text = "a";
  static constexpr auto Fields() { return std::array{Field<&Inner::text>("text", "a text")}; }
};

struct Sample {
  int64_t count = 3;
  double rate = 0.5;
  bool on = false;
  Mode mode = Mode::kLocal;
  std::vector<int64_t> sizes = {1, 2};
  std::optional<double> limit;
  Inner inner;
  static constexpr auto Fields() {
    return std::array{Field<&Sample::count>("count", "a count", kAtLeastOne),
                      Field<&Sample::rate>("rate", "a rate"),
                      Field<&Sample::on>("on", "a switch"),
                      Field<&Sample::mode>("mode", "a choice"),
                      Field<&Sample::sizes>("sizes", "a list"),
                      Field<&Sample::limit>("limit", "maybe a number"),
                      Field<&Sample::inner>("inner", "a struct")};
  }
};

TEST(Reflect, PrintsOnlyWhatDiffersFromTheDefault) {
  EXPECT_EQ(PrintValue(TypeOf<Sample>(), AnyStruct::Of(Sample{}).data()), "{}");
  Sample s;
  s.rate = 0.1;
  s.mode = Mode::kGlobal;
  s.sizes = {};
  s.limit = 1e-30;
  s.inner.text = "q\"\n中";
  EXPECT_EQ(PrintValue(TypeOf<Sample>(), &s),
            "{rate=0.1, mode=global, sizes=[], limit=1e-30, inner={text=\"q\\\"\\n中\"}}");
}

TEST(Reflect, ParsesWhatItPrints) {
  Sample s;
  s.count = -9007199254740993;
  s.rate = 0.1 + 0.2;
  s.on = true;
  s.sizes = {5, -6, 7};
  s.limit = 2.5;
  const std::string text = PrintValue(TypeOf<Sample>(), &s, true);
  Sample back;
  std::string_view rest = text;
  ASSERT_TRUE(ParseValue(TypeOf<Sample>(), &rest, &back).ok());
  EXPECT_EQ(rest, "");
  EXPECT_EQ(PrintValue(TypeOf<Sample>(), &back, true), text);
  EXPECT_EQ(back.rate, s.rate);
}

TEST(Reflect, ParseErrorsNameTheField) {
  Sample s;
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"{count=x}", "in field 'count'"},
           {"{speed=1}", "no field is called 'speed'"},
           {"{mode=far}", "'far' is not one of local, global"},
           {"{sizes=[1}", "',' or ']'"}}) {
    std::string_view rest = text;
    const absl::Status status = ParseValue(TypeOf<Sample>(), &rest, &s);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_NE(MessageOf(status).find(message), std::string::npos) << MessageOf(status);
  }
}

TEST(Reflect, AnyStructComparesByValue) {
  Sample s;
  const AnyStruct a = AnyStruct::Of(s);
  EXPECT_TRUE(a == AnyStruct::Of(s));
  AnyStruct b = a.Clone();
  static_cast<Sample*>(b.mutable_data())->count = 4;
  EXPECT_FALSE(a == b);
  EXPECT_EQ(a.As<Sample>().count, 3);
}

// Known answers of the Random123 distribution for Philox4x32-10.
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(Philox(0, 0, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, ManyAtATimeAreTheSame) {
  const RandomKey key(11);
  std::array<uint32_t, 37> bits;
  for (const uint64_t step : {uint64_t{1}, uint64_t{1} << 33}) {
    key.UpperBits(0xFFFFFFF0u, step, bits);
    for (uint64_t i = 0; i < bits.size(); ++i) {
      EXPECT_EQ(bits[i], key.Bits(0xFFFFFFF0u + i * step) >> 32) << i;
    }
  }
}

TEST(Random, MomentsAndIndependenceOfOrder) {
  const RandomKey key = RandomKey(7).Mix("layer").Mix(3);
  double sum = 0, squares = 0, uniform = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double n = key.Normal(static_cast<uint64_t>(i));
    sum += n;
    squares += n * n;
    uniform += key.Uniform(static_cast<uint64_t>(i));
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.01);
  EXPECT_EQ(key.Bits(5), RandomKey(7).Mix("layer").Mix(3).Bits(5));
  EXPECT_NE(key.Bits(5), RandomKey(7).Mix("layer").Mix(4).Bits(5));
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t v = key.Below(i, 10);
    ASSERT_LT(v, 10u);
    seen.insert(v);
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(Text, NearestFindsMisspellings) {
  const std::vector<std::string> keys = {"learning_rate", "epochs", "warmup_epochs", "momentum"};
  EXPECT_EQ(Nearest("learning_rte", keys), "learning_rate");
  EXPECT_EQ(Nearest("epcohs", keys), "epochs");
  EXPECT_EQ(Nearest("Warmup-Epochs", keys), "warmup_epochs");
  EXPECT_EQ(Nearest("zzzzzz", keys), "");
}

TEST(Text, Amounts) {
  EXPECT_EQ(HumanBytes(12), "12 B");
  EXPECT_EQ(HumanBytes(1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(HumanDuration(11560), "3:12:40");
  EXPECT_EQ(HumanDuration(65), "1:05");
}

TEST(Status, FramesFollowTheMessage) {
  const auto inner = [] { return InvalidArgument("bad {}", 1); };
  const auto outer = [&]() -> absl::Status {
    RETURN_IF_ERROR(inner(), "while reading {}", "x");
    return absl::OkStatus();
  };
  EXPECT_EQ(MessageOf(outer()), "bad 1\n  while reading x");
}

}  // namespace
}  // namespace capstan
