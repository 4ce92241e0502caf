#include "engine/tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace capstan {
namespace {

TEST(Half, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const Half h{static_cast<uint16_t>(bits)};
    if (std::isnan(h.ToFloat())) {
      EXPECT_TRUE(std::isnan(Half::From(h.ToFloat()).ToFloat()));
      continue;
    }
    EXPECT_EQ(Half::From(h.ToFloat()).bits, bits);
    EXPECT_EQ(Half::From(static_cast<double>(h.ToFloat())).bits, bits);
  }
}

// Between two neighbours: below the middle down, above it up, in the middle to the even one.
TEST(Half, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7BFFu; ++bits) {
    const double low = Half{static_cast<uint16_t>(bits)}.ToFloat();
    const double high = Half{static_cast<uint16_t>(bits + 1)}.ToFloat();
    const double middle = (low + high) / 2;
    const uint32_t even = (bits & 1u) == 0 ? bits : bits + 1;
    ASSERT_EQ(Half::From(middle).bits, even);
    ASSERT_EQ(Half::From(static_cast<float>(middle)).bits, even);
    ASSERT_EQ(Half::From(-middle).bits, even | 0x8000u);
    ASSERT_EQ(Half::From(std::nextafter(middle, 0)).bits, bits);
    ASSERT_EQ(Half::From(std::nextafter(middle, 1e9)).bits, bits + 1);
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(Half::From(1.f).bits, 0x3C00);
  EXPECT_EQ(Half::From(-2.f).bits, 0xC000);
  EXPECT_EQ(Half::From(65504.f).bits, 0x7BFF);
  EXPECT_EQ(Half::From(65519.99).bits, 0x7BFF);
  EXPECT_EQ(Half::From(65520.f).bits, 0x7C00);
  EXPECT_EQ(Half::From(-INFINITY).bits, 0xFC00);
  EXPECT_EQ(Half::From(1e300).bits, 0x7C00);
  EXPECT_EQ(Half::From(0x1p-24).bits, 1);
  EXPECT_EQ(Half::From(1e-300).bits, 0);
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7F7Fu; ++bits) {
    const double low = BFloat16{static_cast<uint16_t>(bits)}.ToFloat();
    const double high = BFloat16{static_cast<uint16_t>(bits + 1)}.ToFloat();
    const double middle = (low + high) / 2;
    ASSERT_EQ(BFloat16::From(low).bits, bits);
    ASSERT_EQ(BFloat16::From(middle).bits, (bits & 1u) == 0 ? bits : bits + 1);
    ASSERT_EQ(BFloat16::From(std::nextafter(middle, 0)).bits, bits);
    ASSERT_EQ(BFloat16::From(std::nextafter(middle, INFINITY)).bits, bits + 1);
  }
}

TEST(BFloat16, KnownValues) {
  EXPECT_EQ(BFloat16::From(1.f).bits, 0x3F80);
  EXPECT_EQ(BFloat16::From(INFINITY).bits, 0x7F80);
  EXPECT_EQ(BFloat16::From(3.4e38f).bits, 0x7F80);
  const float tiny_nan = std::bit_cast<float>(0x7F800001u);
  EXPECT_TRUE(std::isnan(BFloat16::From(tiny_nan).ToFloat()));
}

}  // namespace
}  // namespace capstan
