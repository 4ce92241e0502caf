#include "engine/data/decode.h"

#include <gtest/gtest.h>
#include <spng.h>

#include <array>
#include <cstdlib>
#include <string>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/file.h"

namespace capstan {
namespace {

using Rgb = std::array<int, 3>;

std::string TestFile(const std::string& name) {
  std::string bytes;
  CHECK_OK(ReadFile("engine/data/testdata/" + name, &bytes));
  return bytes;
}

Image Decoded(std::string_view bytes) {
  Image image;
  const absl::Status status = DecodePicture(bytes, &image);
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  return image;
}

Rgb At(const Image& image, int64_t y, int64_t x) {
  const uint8_t* p = image.Row(y) + x * 3;
  return {p[0], p[1], p[2]};
}

void ExpectNear(const Rgb& actual, const Rgb& wanted, int tolerance) {
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(actual[c], wanted[c], tolerance) << "channel " << c;
}

std::string MakePng(int width, int height, spng_color_type color, int depth,
                    const std::string& pixels, spng_plte* palette = nullptr,
                    spng_trns* transparency = nullptr) {
  spng_ctx* png = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{.width = static_cast<uint32_t>(width), .height = static_cast<uint32_t>(height)};
  header.bit_depth = static_cast<uint8_t>(depth);
  header.color_type = color;
  CHECK_EQ(spng_set_ihdr(png, &header), 0);
  if (palette != nullptr) {
    CHECK_EQ(spng_set_plte(png, palette), 0);
  }
  if (transparency != nullptr) {
    CHECK_EQ(spng_set_trns(png, transparency), 0);
  }
  CHECK_EQ(spng_encode_image(png, pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE),
           0);
  size_t size = 0;
  int error = 0;
  void* buffer = spng_get_png_buffer(png, &size, &error);
  std::string bytes(static_cast<const char*>(buffer), size);
  std::free(buffer);
  spng_ctx_free(png);
  return bytes;
}

std::string Bytes(std::initializer_list<int> values) {
  return std::string(values.begin(), values.end());
}

// 16-bit samples in the machine's order.
std::string Words(std::initializer_list<uint16_t> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()),
                     values.size() * sizeof(uint16_t));
}

TEST(Decode, AdobeInksBecomeRgb) {
  for (const auto& [name, wanted] :
       std::vector<std::pair<std::string, Rgb>>{{"cmyk_red.jpg", {255, 0, 0}},
                                                {"cmyk_white.jpg", {255, 255, 255}},
                                                {"cmyk_black_k.jpg", {0, 0, 0}},
                                                {"cmyk_mid.jpg", {223, 167, 111}}}) {
    SCOPED_TRACE(name);
    const Image image = Decoded(TestFile(name));
    ASSERT_EQ(image.shape, (ImageShape{3, 16, 16}));
    ExpectNear(At(image, 0, 0), wanted, 3);
    ExpectNear(At(image, 15, 15), wanted, 3);
  }
}

TEST(Decode, ContentDecidesNotTheName) {
  const Image png = Decoded(TestFile("really_png.JPEG"));
  EXPECT_EQ(At(png, 0, 0), (Rgb{10, 200, 30}));
  const Image red = Decoded(TestFile("red.jpg"));
  ExpectNear(At(red, 0, 0), {254, 0, 0}, 1);
  const Image grey = Decoded(TestFile("grey8.jpg"));
  EXPECT_EQ(grey.shape.channels, 3);

  Image image;
  EXPECT_EQ(MessageOf(DecodePicture("", &image)), "the file is empty");
  EXPECT_EQ(MessageOf(DecodePicture("<html>no</html>\n", &image)),
            "not a JPEG or PNG picture (it starts with 3c 68 74 6d 6c 3e 6e 6f ...)");
}

TEST(Decode, ExifOrientationIsApplied) {
  const Rgb red{255, 0, 0}, green{0, 255, 0}, blue{0, 0, 255}, white{255, 255, 255};
  const auto color = [&](char c) {
    return c == 'R' ? red : c == 'G' ? green : c == 'B' ? blue : white;
  };
  const std::array<std::string, 8> quadrants = {"RGBW", "GRWB", "WBGR", "BWRG",
                                                "RBGW", "BRWG", "WGBR", "GWRB"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const Image image = Decoded(TestFile("exif" + std::to_string(orientation) + ".jpg"));
    const ImageShape wanted = orientation < 5 ? ImageShape{3, 16, 32} : ImageShape{3, 32, 16};
    ASSERT_EQ(image.shape, wanted);
    const std::string& q = quadrants[static_cast<size_t>(orientation - 1)];
    for (int i = 0; i < 4; ++i) {
      const int64_t y = i / 2 == 0 ? 2 : wanted.height - 3, x = i % 2 == 0 ? 2 : wanted.width - 3;
      ExpectNear(At(image, y, x), color(q[static_cast<size_t>(i)]), 6);
    }
  }
}

TEST(Decode, TruncatedPicturesAreDamaged) {
  Image image;
  const absl::Status half = DecodePicture(TestFile("trunc_half_base.jpg"), &image);
  EXPECT_EQ(half.code(), absl::StatusCode::kDataLoss) << MessageOf(half);
  for (const std::string name : {"red.jpg", "exif1.jpg", "really_png.JPEG"}) {
    std::string bytes = TestFile(name);
    // A PNG ends with the checksum of an empty chunk, which nobody needs.
    if (name == "really_png.JPEG") bytes.resize(bytes.size() - 4);
    for (size_t size = 1; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodePicture(std::string_view(bytes).substr(0, size), &image).ok())
          << name << " cut to " << size;
    }
  }
}

TEST(Decode, BytesAfterTheEndAreHarmless) {
  Decoded(TestFile("red.jpg") + "more");
  Decoded(TestFile("really_png.JPEG") + "more");
}

TEST(Decode, PngKinds) {
  EXPECT_EQ(At(Decoded(MakePng(2, 1, SPNG_COLOR_TYPE_GRAYSCALE, 8, Bytes({7, 250}))), 0, 1),
            (Rgb{250, 250, 250}));
  // One bit: 0x40 holds the pixels 0 1.
  EXPECT_EQ(At(Decoded(MakePng(2, 1, SPNG_COLOR_TYPE_GRAYSCALE, 1, Bytes({0x40}))), 0, 1),
            (Rgb{255, 255, 255}));
  // 16 bits are scaled, not cut: 0x00ff is 255 / 65535, nearer to 1 than to 0.
  const Image deep = Decoded(MakePng(3, 1, SPNG_COLOR_TYPE_GRAYSCALE, 16, Words({0, 255, 65535})));
  EXPECT_EQ(At(deep, 0, 0), (Rgb{0, 0, 0}));
  EXPECT_EQ(At(deep, 0, 1), (Rgb{1, 1, 1}));
  EXPECT_EQ(At(deep, 0, 2), (Rgb{255, 255, 255}));

  spng_plte palette{.n_entries = 2, .entries = {{10, 20, 30, 0}, {40, 50, 60, 0}}};
  const std::string indices = Bytes({1, 0});
  EXPECT_EQ(At(Decoded(MakePng(2, 1, SPNG_COLOR_TYPE_INDEXED, 8, indices, &palette)), 0, 0),
            (Rgb{40, 50, 60}));
  spng_trns transparency{};
  transparency.n_type3_entries = 2;
  transparency.type3_alpha[0] = 0;
  transparency.type3_alpha[1] = 255;
  const Image holes =
      Decoded(MakePng(2, 1, SPNG_COLOR_TYPE_INDEXED, 8, indices, &palette, &transparency));
  EXPECT_EQ(At(holes, 0, 0), (Rgb{40, 50, 60}));
  EXPECT_EQ(At(holes, 0, 1), (Rgb{255, 255, 255}));
}

TEST(Decode, AlphaIsComposedOverWhite) {
  const Image image = Decoded(MakePng(3, 1, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8,
                                      Bytes({9, 9, 9, 0, 100, 0, 200, 51, 1, 2, 3, 255})));
  EXPECT_EQ(At(image, 0, 0), (Rgb{255, 255, 255}));
  EXPECT_EQ(At(image, 0, 1), (Rgb{224, 204, 244}));  // 255 * 4/5 + value / 5
  EXPECT_EQ(At(image, 0, 2), (Rgb{1, 2, 3}));
  const Image grey =
      Decoded(MakePng(1, 1, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 16, Words({0, 65535 / 5})));
  EXPECT_EQ(At(grey, 0, 0), (Rgb{204, 204, 204}));
}

}  // namespace
}  // namespace capstan
