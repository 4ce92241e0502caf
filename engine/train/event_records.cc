#include "engine/train/event_records.h"

#include <array>
#include <bit>
#include <cstring>

namespace capstan {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie");

template <typename T>
std::string Bytes(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Protobuf's wire types.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string Tag(uint64_t field, Wire wire) { return Varint(field << 3 | wire); }

std::string Text(uint64_t field, std::string_view text) {
  return Tag(field, kLength) + Varint(text.size()) + std::string(text);
}

// Sent along inside the data it protects, a checksum would spoil that of the whole: TFRecord masks.
uint32_t Masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

std::string Record(std::string_view message) {
  const std::string length = Bytes(static_cast<uint64_t>(message.size()));
  return length + Bytes(Masked(Crc32c(length))) + std::string(message) +
         Bytes(Masked(Crc32c(message)));
}

// Event {wall_time = 1, step = 2, file_version = 3 | summary = 5 | session_log = 7}.
std::string Event(double wall_time, int64_t step, const std::string& what) {
  std::string event = Tag(1, kFixed64) + Bytes(wall_time);
  if (step != 0) event += Tag(2, kVarint) + Varint(static_cast<uint64_t>(step));
  return Record(event + what);
}

constexpr std::array<uint32_t, 256> CrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = CrcTable();
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return ~crc;
}

std::string VersionRecord(double wall_time) {
  return Event(wall_time, 0, Text(3, "brain.Event:2"));
}

std::string StartRecord(double wall_time, int64_t step) {
  constexpr uint64_t kStart = 1;
  return Event(wall_time, step, Text(7, Tag(1, kVarint) + Varint(kStart)));
}

std::string ScalarsRecord(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    // Value {tag = 1, simple_value = 2}.
    summary += Text(1, Text(1, tag) + Tag(2, kFixed32) + Bytes(static_cast<float>(value)));
  }
  return Event(wall_time, step, Text(5, summary));
}

}  // namespace capstan
