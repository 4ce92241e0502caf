#include "engine/train/event_records.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace capstan {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// RFC 3720, appendix B.4, and the check value of the polynomial.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

// The bytes that the package tensorboard 2.21 writes for the same events.
TEST(EventRecords, ByteForByte) {
  EXPECT_EQ(Hex(VersionRecord(1700000000.25)),
            "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9");
  EXPECT_EQ(Hex(StartRecord(1700000001.5, 8)),
            "0f000000000000006d532b090900006040fc54d94110083a02080187fe3872");
  EXPECT_EQ(Hex(ScalarsRecord(1700000002, 1234567, {{"train/loss", 2.5}, {"eval/top1", 0.1}})),
            "34000000000000005e33175c0900008040fc54d9411087ad4b2a250a110a0a747261696e2f6c6f73"
            "7315000020400a100a096576616c2f746f703115cdcccc3d5ce56d5e");
}

}  // namespace
}  // namespace capstan
