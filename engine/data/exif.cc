#include "engine/data/exif.h"

#include <cstring>
#include <utility>

namespace capstan {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;

}  // namespace

int ExifOrientation(std::string_view tiff) {
  const bool big = tiff.starts_with("MM");
  if (!big && !tiff.starts_with("II")) return 1;
  const auto number = [&](size_t at, size_t bytes) -> uint32_t {
    if (at > tiff.size() || tiff.size() - at < bytes) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value = value << 8 | static_cast<uint8_t>(tiff[at + (big ? i : bytes - 1 - i)]);
    }
    return value;
  };
  const size_t directory = number(4, 4);
  const size_t entries = number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * 12;
    if (number(entry, 2) != kOrientationTag) continue;
    const uint32_t value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void ApplyOrientation(int orientation, Image* image, Image* scratch) {
  if (orientation <= 1 || orientation > 8) return;
  // Bits of what the eight values mean: rows and columns swapped, then mirrored.
  const bool transpose = orientation >= 5;
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const ImageShape from = image->shape;
  const ImageShape to = transpose ? ImageShape{from.channels, from.width, from.height} : from;
  scratch->Reset(to);
  const auto channels = static_cast<size_t>(from.channels);
  for (int64_t y = 0; y < to.height; ++y) {
    uint8_t* out = scratch->Row(y);
    const int64_t v = mirror_y ? to.height - 1 - y : y;
    for (int64_t x = 0; x < to.width; ++x, out += channels) {
      const int64_t u = mirror_x ? to.width - 1 - x : x;
      const uint8_t* in =
          transpose ? image->Row(u) + v * from.channels : image->Row(v) + u * from.channels;
      std::memcpy(out, in, channels);
    }
  }
  std::swap(*image, *scratch);
}

}  // namespace capstan
