#include "engine/weights/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/status.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;

template <typename T>
std::string Number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

struct Options {
  uint16_t flags = 0, method = 0;
  bool zip64 = false;  // sizes and places in 64 bits
  std::string comment;
};

// An archive of one stored entry "a/data.pkl" that holds `data`.
std::string Archive(const std::string& data, const Options& o = {}) {
  const std::string name = "a/data.pkl";
  const auto size = static_cast<uint32_t>(data.size());
  const std::string local = "PK\x03\x04" + std::string(22, '\0') +
                            Number<uint16_t>(static_cast<uint16_t>(name.size())) +
                            Number<uint16_t>(3) + name + "xxx" + data;
  const std::string extra = o.zip64 ? Number<uint16_t>(1) + Number<uint16_t>(24) +
                                          Number<uint64_t>(size) + Number<uint64_t>(size) +
                                          Number<uint64_t>(0)
                                    : "";
  const uint32_t shown = o.zip64 ? UINT32_MAX : size;
  const std::string entry = "PK\x01\x02" + std::string(4, '\0') + Number(o.flags) +
                            Number(o.method) + std::string(8, '\0') + Number(shown) +
                            Number(shown) + Number<uint16_t>(static_cast<uint16_t>(name.size())) +
                            Number<uint16_t>(static_cast<uint16_t>(extra.size())) +
                            std::string(10, '\0') + Number<uint32_t>(o.zip64 ? UINT32_MAX : 0) +
                            name + extra;
  std::string end;
  const auto place = static_cast<uint32_t>(local.size());
  const auto bytes = static_cast<uint32_t>(entry.size());
  if (o.zip64) {
    end = "PK\x06\x06" + std::string(28, '\0') + Number<uint64_t>(1) + Number<uint64_t>(bytes) +
          Number<uint64_t>(place) + "PK\x06\x07" + std::string(4, '\0') +
          Number<uint64_t>(place + bytes) + std::string(4, '\0');
  }
  end += "PK\x05\x06" + std::string(6, '\0') + Number<uint16_t>(1) + Number(bytes) +
         Number(o.zip64 ? UINT32_MAX : place) +
         Number<uint16_t>(static_cast<uint16_t>(o.comment.size())) + o.comment;
  return local + entry + end;
}

absl::StatusOr<std::string> DataOf(const std::string& bytes) {
  const auto source = MemoryBytes("x.zip", bytes);
  ASSIGN_OR_RETURN(const ZipArchive zip, ZipArchive::Open(source));
  ASSIGN_OR_RETURN(const ByteRange range, zip.Find(zip.NameEndingWith("/data.pkl")));
  return ReadText(*source, range);
}

TEST(ZipArchive, FindsStoredEntries) {
  for (const bool zip64 : {false, true}) {
    for (const char* comment : {"", "PK\x05\x06 in a comment"}) {
      const auto data = DataOf(Archive("hello", {.zip64 = zip64, .comment = comment}));
      ASSERT_TRUE(data.ok()) << data.status();
      EXPECT_EQ(*data, "hello");
    }
  }
}

TEST(ZipArchive, CompressedAndEncryptedEntriesSaySo) {
  EXPECT_THAT(MessageOf(DataOf(Archive("hello", {.method = 8})).status()),
              HasSubstr("\"a/data.pkl\" is compressed"));
  EXPECT_THAT(MessageOf(DataOf(Archive("hello", {.flags = 1})).status()), HasSubstr("encrypted"));
}

TEST(ZipArchive, EveryCutIsAnError) {
  const std::string whole = Archive("hello");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DataOf(whole.substr(0, size)).ok()) << size;
  }
}

TEST(ZipArchive, NoFlippedBitCrashes) {
  for (const bool zip64 : {false, true}) {
    const std::string whole = Archive("hello", {.zip64 = zip64});
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      const auto data = DataOf(bytes);
      if (data.ok()) {
        EXPECT_LE(data->size(), whole.size());
      }
    }
  }
}

}  // namespace
}  // namespace capstan
