#include "engine/config/scalars.h"

#include <gtest/gtest.h>

#include <array>

namespace capstan {
namespace {

YamlNode Plain(const std::string& text) { return YamlNode::Scalar(text, {"f", 1, 1}); }
YamlNode Quoted(const std::string& text) {
  YamlNode node = Plain(text);
  node.quoted = true;
  return node;
}

template <typename T, typename Read>
void ExpectReads(Read read, const std::string& text, T expected) {
  T value{};
  EXPECT_EQ(read(Plain(text), &value), "") << text;
  EXPECT_EQ(value, expected) << text;
}

template <typename T, typename Read>
std::string Problem(Read read, const YamlNode& node) {
  T value{};
  return read(node, &value);
}

// CFG-01.
TEST(Scalars, ScientificNotationIsANumber) {
  for (const char* text : {"1e-4", "1E-4", "1.0e-4", "0.0001", "1e-04", ".0001", "+1e-4"}) {
    ExpectReads(ReadFloat, text, 0.0001);
  }
  ExpectReads(ReadFloat, "5.e-5", 0.00005);
  ExpectReads(ReadFloat, "5e-05", 0.00005);
  ExpectReads(ReadFloat, "-3", -3.0);
  ExpectReads(ReadFloat, "5.", 5.0);
  ExpectReads(ReadFloat, "1.0/255.0", 1.0 / 255.0);
  ExpectReads(ReadFloat, "1./255.", 1.0 / 255.0);
  EXPECT_EQ(Problem<double>(ReadFloat, Quoted("1e-4")),
            "expected a number, found the quoted text '1e-4'; remove the quotes");
}

TEST(Scalars, RefusesWhatIsNoNumber) {
  const auto problem = [](const char* text) { return Problem<double>(ReadFloat, Plain(text)); };
  EXPECT_EQ(problem("1e400"), "'1e400' does not fit in a double");
  EXPECT_EQ(problem("1e-400"), "'1e-400' does not fit in a double");
  for (const char* text : {"nan", ".nan", ".NaN", "inf", ".inf", "-.inf", "+.INF", "Infinity"}) {
    EXPECT_EQ(problem(text), "'" + std::string(text) + "' is not a finite number");
  }
  for (const char* text :
       {"", "ten", "1e", "0x10", "1_000", "1,5", "--1", "+-1", ".", "1 2", "e5"}) {
    EXPECT_EQ(problem(text), "'" + std::string(text) + "' is not a number");
  }
  EXPECT_EQ(problem("010"),
            "'010' has a leading zero, which some readers take for octal; remove it");
  EXPECT_EQ(problem("1/0"), "'1/0' is not a number or a quotient of two");
  EXPECT_EQ(problem("1/2/3"), "'1/2/3' is not a number or a quotient of two");
  EXPECT_EQ(problem("−1"), "'−1' is not a number: '−' (U+2212, minus sign) is not '-'");
}

TEST(Scalars, IntegersTakeNoPointAndNoExponent) {
  ExpectReads<int64_t>(ReadInt, "0", 0);
  ExpectReads<int64_t>(ReadInt, "-7", -7);
  ExpectReads<int64_t>(ReadInt, "+7", 7);
  ExpectReads<int64_t>(ReadInt, "9223372036854775807", INT64_MAX);
  const auto problem = [](const char* text) { return Problem<int64_t>(ReadInt, Plain(text)); };
  for (const char* text : {"3.5", "1e3", "32.0"}) {
    EXPECT_EQ(problem(text), "'" + std::string(text) +
                                 "' is not an integer; integers take no point and no exponent");
  }
  for (const char* text : {"ten", "", "0x10", "0o17", "1_000", "-"}) {
    EXPECT_EQ(problem(text), "'" + std::string(text) + "' is not an integer");
  }
  EXPECT_EQ(problem("9223372036854775808"), "'9223372036854775808' does not fit in 64 bits");
  EXPECT_EQ(problem("010"),
            "'010' has a leading zero, which some readers take for octal; remove it");
  EXPECT_EQ(problem("-00"),
            "'-00' has a leading zero, which some readers take for octal; remove it");
  // CFG-06.
  EXPECT_EQ(problem("５"), "'５' is not an integer: '５' (U+FF15, full-width digit) is not '5'");
  EXPECT_EQ(Problem<int64_t>(ReadInt, Quoted("5")),
            "expected an integer, found the quoted text '5'; remove the quotes");
}

// CFG-02.
TEST(Scalars, SwitchesAreTrueOrFalse) {
  ExpectReads(ReadBool, "true", true);
  ExpectReads(ReadBool, "True", true);
  ExpectReads(ReadBool, "false", false);
  ExpectReads(ReadBool, "False", false);
  for (const char* text : {"tRuE", "TRUE", "2", "1", "yes", "on", "no", "off", "y"}) {
    EXPECT_EQ(Problem<bool>(ReadBool, Plain(text)),
              "'" + std::string(text) + "' is not a switch; write true or false");
  }
  EXPECT_EQ(Problem<bool>(ReadBool, Quoted("true")),
            "expected true or false, found the quoted text 'true'; remove the quotes");
}

TEST(Scalars, WordsAreListed) {
  constexpr std::array<const char*, 3> kNames = {"off", "O1", "O2"};
  int64_t index = -1;
  EXPECT_EQ(ReadEnum(Plain("off"), kNames, &index), "");
  EXPECT_EQ(index, 0);
  EXPECT_EQ(ReadEnum(Quoted("O2"), kNames, &index), "");
  EXPECT_EQ(index, 2);
  EXPECT_EQ(ReadEnum(Plain("Off"), kNames, &index),
            "'Off' is not allowed; did you mean 'off'? choose one of off, O1, O2");
  EXPECT_EQ(ReadEnum(YamlNode::Map({"f", 1, 1}), kNames, &index),
            "expected one of off, O1, O2, found a map");
}

TEST(Scalars, BoundsSayWhatIsAllowed) {
  EXPECT_EQ(CheckBounds(1, "1", kAtLeastOne), "");
  EXPECT_EQ(CheckBounds(-1, "-1", kAtLeastOne), "-1 is out of range; it must be at least 1");
  EXPECT_EQ(CheckBounds(0, "0", kPositive), "0 is out of range; it must be greater than 0");
  EXPECT_EQ(CheckBounds(1.5, "1.5", {.min = 0, .max = 1}),
            "1.5 is out of range; it must be from 0 to 1");
  EXPECT_EQ(CheckBounds(2, "2", {.min = 1, .max = 1}), "2 is out of range; it must be 1");
  EXPECT_EQ(CheckBounds(0, "0", {.min = 0, .max = 1, .open_min = true}),
            "0 is out of range; it must be greater than 0 and at most 1");
  EXPECT_EQ(CheckBounds(9, "9", {.max = 8}), "9 is out of range; it must be at most 8");
}

}  // namespace
}  // namespace capstan
