#include "engine/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "engine/base/check.h"
#include "engine/data/pixel_ops.h"
#include "engine/data/warp.h"

namespace capstan {
namespace {

using Pixels = std::vector<uint8_t>;

Image Make(const ImageShape& shape, const Pixels& pixels) {
  Image image;
  image.Reset(shape);
  CHECK_EQ(image.pixels.size(), pixels.size());
  image.pixels = pixels;
  return image;
}

Image Counting(const ImageShape& shape) {
  Image image;
  image.Reset(shape);
  std::iota(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  return image;
}

template <typename Change>
Pixels After(Image image, Change change) {
  change(&image);
  return image.pixels;
}

TEST(PixelOps, FactorOneChangesNothing) {
  const Image image = Counting({3, 6, 5});
  EXPECT_EQ(After(image, [](Image* i) { AdjustBrightness(1, i); }), image.pixels);
  EXPECT_EQ(After(image, [](Image* i) { AdjustContrast(1, i); }), image.pixels);
  EXPECT_EQ(After(image, [](Image* i) { AdjustColor(1, i); }), image.pixels);
  EXPECT_EQ(After(image, [](Image* i) { AdjustSharpness(1, i); }), image.pixels);
}

TEST(PixelOps, Factors) {
  const Image image = Make({3, 1, 2}, {10, 20, 30, 200, 200, 200});
  EXPECT_EQ(After(image, [](Image* i) { AdjustBrightness(2, i); }),
            (Pixels{20, 40, 60, 255, 255, 255}));
  // Greys 18.15 and 200: their mean is 109.
  EXPECT_EQ(After(image, [](Image* i) { AdjustContrast(0, i); }), Pixels(6, 109));
  EXPECT_EQ(After(image, [](Image* i) { AdjustContrast(0.5, i); }),
            (Pixels{60, 65, 70, 155, 155, 155}));
  EXPECT_EQ(After(image, [](Image* i) { AdjustColor(0, i); }), (Pixels{18, 18, 18, 200, 200, 200}));
}

TEST(PixelOps, SharpnessBlursTheInside) {
  const Image dot = Make({1, 3, 4}, {0, 0, 0, 0, 0, 130, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(After(dot, [](Image* i) { AdjustSharpness(0, i); }),
            (Pixels{0, 0, 0, 0, 0, 50, 10, 0, 0, 0, 0, 0}));
  EXPECT_EQ(After(dot, [](Image* i) { AdjustSharpness(2, i); }),
            (Pixels{0, 0, 0, 0, 0, 210, 0, 0, 0, 0, 0, 0}));
}

TEST(PixelOps, HueTurnsRedToGreenToBlue) {
  const Image red = Make({3, 1, 2}, {240, 40, 40, 90, 90, 90});
  EXPECT_EQ(After(red, [](Image* i) { AdjustHue(1.0 / 3, i); }), (Pixels{40, 240, 40, 90, 90, 90}));
  EXPECT_EQ(After(red, [](Image* i) { AdjustHue(-1.0 / 3, i); }),
            (Pixels{40, 40, 240, 90, 90, 90}));
  const Image any = Make({3, 1, 1}, {12, 200, 130});
  EXPECT_EQ(After(any, [](Image* i) { AdjustHue(0, i); }), any.pixels);
  EXPECT_EQ(After(any, [](Image* i) { AdjustHue(0.5, i); }), (Pixels{200, 12, 82}));
}

TEST(PixelOps, Tables) {
  const Image row = Make({1, 1, 4}, {0, 100, 128, 255});
  EXPECT_EQ(After(row, [](Image* i) { Posterize(2, i); }), (Pixels{0, 64, 128, 192}));
  EXPECT_EQ(After(row, [](Image* i) { Solarize(128, i); }), (Pixels{0, 100, 127, 0}));
  EXPECT_EQ(After(row, Invert), (Pixels{255, 155, 127, 0}));
  EXPECT_EQ(After(Make({1, 1, 3}, {50, 75, 100}), AutoContrast), (Pixels{0, 127, 255}));
  EXPECT_EQ(After(Make({1, 1, 3}, {50, 50, 50}), AutoContrast), Pixels(3, 50));
  EXPECT_EQ(After(Make({1, 1, 3}, {50, 50, 50}), Equalize), Pixels(3, 50));
  // 512 values in 0..63, eight of each: steps of (512 - 8) / 255 = 1, cut at 255.
  Image steps;
  steps.Reset({1, 8, 64});
  for (size_t i = 0; i < steps.pixels.size(); ++i) steps.pixels[i] = static_cast<uint8_t>(i % 64);
  const Pixels even = After(steps, Equalize);
  EXPECT_EQ(even[0], 0);
  EXPECT_EQ(even[1], 8);
  EXPECT_EQ(even[31], 248);
  EXPECT_EQ(even[63], 255);
}

TEST(Warp, IdentityShiftAndFill) {
  const Image image = Counting({3, 4, 5});
  Image out;
  Warp(image, {}, 9, &out);
  EXPECT_EQ(out.pixels, image.pixels);
  Warp(Make({1, 1, 4}, {10, 20, 30, 40}), {.x0 = 1}, 9, &out);
  EXPECT_EQ(out.pixels, (Pixels{20, 30, 40, 9}));
  Warp(Make({1, 1, 4}, {10, 20, 30, 40}), {.x0 = -0.5}, 0, &out);
  EXPECT_EQ(out.pixels, (Pixels{5, 15, 25, 35}));
}

TEST(Augment, GeometryKeepsTheCentreOrTheCorner) {
  // Half a turn about the centre.
  Image image = Counting({3, 4, 6});
  const Pixels before = image.pixels;
  Augment(AugmentOp::kRotate, 180, &image);
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 6; ++x) {
      EXPECT_EQ(image.Row(y)[x * 3], before[static_cast<size_t>(((3 - y) * 6 + 5 - x) * 3)]);
    }
  }
  Image shifted = Make({3, 1, 2}, {1, 2, 3, 4, 5, 6});
  Augment(AugmentOp::kTranslateX, 0.5, &shifted);
  EXPECT_EQ(shifted.pixels, (Pixels{4, 5, 6, 128, 128, 128}));
}

TEST(Augment, MagnitudeZeroOfTheSignedOnesIsTheIdentity) {
  const Image image = Counting({3, 9, 7});
  for (const AugmentOp op : {AugmentOp::kShearX, AugmentOp::kShearY, AugmentOp::kTranslateX,
                             AugmentOp::kTranslateY, AugmentOp::kRotate, AugmentOp::kColor,
                             AugmentOp::kContrast, AugmentOp::kSharpness, AugmentOp::kBrightness}) {
    EXPECT_EQ(After(image, [&](Image* i) { Augment(op, 0, i); }), image.pixels)
        << static_cast<int>(op);
  }
}

TEST(Augment, DrawsComeFromTheKeyAlone) {
  const Image image = Counting({3, 16, 16});
  std::set<Pixels> rand, automatic;
  for (uint64_t k = 0; k < 200; ++k) {
    Image first, again;
    ASSERT_TRUE(RandAugment({}, RandomKey(k), image, &first).ok());
    ASSERT_TRUE(RandAugment({}, RandomKey(k), image, &again).ok());
    ASSERT_EQ(first.pixels, again.pixels);
    ASSERT_EQ(first.shape, image.shape);
    rand.insert(first.pixels);
    ASSERT_TRUE(AutoAugment({}, RandomKey(k), image, &first).ok());
    ASSERT_TRUE(AutoAugment({}, RandomKey(k), image, &again).ok());
    ASSERT_EQ(first.pixels, again.pixels);
    automatic.insert(first.pixels);
  }
  // 14 * 14 pairs with signs; 25 pairs with probabilities and signs.
  EXPECT_GT(rand.size(), 70u);
  EXPECT_GT(automatic.size(), 20u);
}

}  // namespace
}  // namespace capstan
