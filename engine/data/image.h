// Image: pixels of 8 bits, rows top to bottom, channels interleaved (HWC). RGB after decoding.
//
// Reset keeps the memory it has, so that an Image that is used again and again stops allocating.
// A plain value; not safe for concurrent writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capstan {

// Logical sizes of one image, as a model sees them (c, h, w).
struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;

  int64_t count() const { return channels * height * width; }
  // "3x224x224"
  std::string ToString() const;
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

struct Image {
  ImageShape shape;
  std::vector<uint8_t> pixels;

  // Takes a new shape; the pixels are unspecified afterwards.
  void Reset(const ImageShape& new_shape) {
    shape = new_shape;
    pixels.resize(static_cast<size_t>(shape.count()));
  }
  int64_t stride() const { return shape.width * shape.channels; }
  const uint8_t* Row(int64_t y) const { return pixels.data() + y * stride(); }
  uint8_t* Row(int64_t y) { return pixels.data() + y * stride(); }
};

// A rectangle of pixels.
struct Box {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

}  // namespace capstan
