#include "engine/data/transforms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/image_pipeline.h"
#include "engine/data/resample.h"

namespace capstan {
namespace {

using Pixels = std::vector<uint8_t>;
const RandomKey kAnyKey(1);

Image Make(const ImageShape& shape, const Pixels& pixels) {
  Image image;
  image.Reset(shape);
  CHECK_EQ(image.pixels.size(), pixels.size());
  image.pixels = pixels;
  return image;
}

// Pixels 0, 1, 2, ... (modulo 256).
Image Counting(const ImageShape& shape) {
  Image image;
  image.Reset(shape);
  std::iota(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  return image;
}

Pixels ScaledTo(const Image& in, int64_t height, int64_t width, bool antialias = false) {
  Image out;
  Resample(in, {0, 0, in.shape.width, in.shape.height}, height, width, antialias, &out);
  return out.pixels;
}

TEST(Resample, HalfPixelCentresWithoutAntialias) {
  const Image row = Make({1, 1, 4}, {0, 10, 20, 30});
  EXPECT_EQ(ScaledTo(row, 1, 2), (Pixels{5, 25}));
  EXPECT_EQ(ScaledTo(row, 1, 6), (Pixels{0, 5, 12, 18, 25, 30}));
  EXPECT_EQ(ScaledTo(row, 1, 4), row.pixels);
  EXPECT_EQ(ScaledTo(row, 1, 2, /*antialias=*/true), (Pixels{7, 23}));
  const Image column = Make({1, 4, 1}, {0, 10, 20, 30});
  EXPECT_EQ(ScaledTo(column, 2, 1), (Pixels{5, 25}));
  EXPECT_EQ(ScaledTo(column, 6, 1), (Pixels{0, 5, 12, 18, 25, 30}));
}

TEST(Resample, EveryShapeOfFlatColorStaysFlat) {
  for (const auto& [height, width] : {std::pair(1, 1), {1, 2000}, {2000, 2}, {7, 5}}) {
    for (const bool antialias : {false, true}) {
      const Image flat =
          Make({3, height, width}, Pixels(static_cast<size_t>(3 * height * width), 200));
      const Pixels out = ScaledTo(flat, 32, 20, antialias);
      EXPECT_EQ(out, Pixels(3 * 32 * 20, 200)) << height << "x" << width;
    }
  }
}

TEST(Resample, ReadsTheRegionOnly) {
  const Image image = Counting({3, 4, 5});
  Image out;
  Resample(image, {1, 2, 3, 2}, 2, 3, false, &out);
  EXPECT_EQ(out.pixels,
            (Pixels{33, 34, 35, 36, 37, 38, 39, 40, 41, 48, 49, 50, 51, 52, 53, 54, 55, 56}));
}

TEST(Transforms, ResizeShortKeepsProportions) {
  Image out;
  ASSERT_TRUE(ResizeImage({.resize_short = 256}, kAnyKey, Counting({3, 333, 500}), &out).ok());
  EXPECT_EQ(out.shape, (ImageShape{3, 256, 384}));
  ASSERT_TRUE(ResizeImage({.resize_short = 32}, kAnyKey, Counting({3, 2000, 2}), &out).ok());
  EXPECT_EQ(out.shape, (ImageShape{3, 32000, 32}));
  ASSERT_TRUE(ResizeImage({.size = 8}, kAnyKey, Counting({3, 3, 5}), &out).ok());
  EXPECT_EQ(out.shape, (ImageShape{3, 8, 8}));
}

TEST(Transforms, CropImageKeepsTheCentre) {
  Image out;
  ASSERT_TRUE(CropImage({.size = 2}, kAnyKey, Counting({1, 4, 5}), &out).ok());
  EXPECT_EQ(out.pixels, (Pixels{6, 7, 11, 12}));
  EXPECT_EQ(MessageOf(CropImage({.size = 5}, kAnyKey, Counting({1, 4, 5}), &out)),
            "the picture of 4x5 is smaller than the crop of 5x5");
}

TEST(Transforms, FlipCodes) {
  const Image image = Make({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const std::array<std::pair<int64_t, Pixels>, 3> wanted = {
      {{1, {3, 2, 1, 6, 5, 4}}, {0, {4, 5, 6, 1, 2, 3}}, {-1, {6, 5, 4, 3, 2, 1}}}};
  for (const auto& [code, flipped] : wanted) {
    int flips = 0;
    for (uint64_t k = 0; k < 400; ++k) {
      Image out;
      ASSERT_TRUE(RandFlipImage({.flip_code = code}, RandomKey(k), image, &out).ok());
      EXPECT_TRUE(out.pixels == flipped || out.pixels == image.pixels);
      flips += out.pixels == flipped;
    }
    EXPECT_NEAR(flips, 200, 40);
  }
}

TEST(Transforms, RandCropBoxesLieInsideAndFollowTheRanges) {
  double area = 0;
  constexpr int kDraws = 2000;
  for (uint64_t k = 0; k < kDraws; ++k) {
    const Box box = RandCropBox({}, RandomKey(k), 300, 400);
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.x + box.width <= 400 && box.y + box.height <= 300);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    ASSERT_TRUE(ratio > 0.73 && ratio < 1.36) << ratio;
    area += static_cast<double>(box.width * box.height) / (300 * 400);
  }
  // Boxes that are wider than high lose less of the range at a ratio of 4:3: about 0.45 on average.
  EXPECT_NEAR(area / kDraws, 0.45, 0.05);
  for (const auto& [height, width] : {std::pair(1, 1), {1, 2000}, {2000, 2}}) {
    for (uint64_t k = 0; k < 200; ++k) {
      Image out;
      ASSERT_TRUE(
          RandCropImage({.size = 32}, RandomKey(k), Counting({3, height, width}), &out).ok());
      ASSERT_EQ(out.shape, (ImageShape{3, 32, 32}));
    }
  }
}

TEST(Transforms, RandCropPadReachesEveryOffset) {
  std::set<Pixels> seen;
  for (uint64_t k = 0; k < 500; ++k) {
    Image out;
    ASSERT_TRUE(
        RandCropPad({.size = 2, .padding = 1}, RandomKey(k), Make({1, 2, 2}, {1, 2, 3, 4}), &out)
            .ok());
    seen.insert(out.pixels);
  }
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_TRUE(seen.contains({1, 2, 3, 4}));
  EXPECT_TRUE(seen.contains({0, 0, 0, 1}));
  EXPECT_TRUE(seen.contains({4, 0, 0, 0}));
  EXPECT_TRUE(seen.contains({2, 0, 4, 0}));
}

TEST(Transforms, AffineWithoutRangesIsTheIdentity) {
  Image out;
  const Image image = Counting({3, 5, 7});
  const RandAffineOptions still{.degrees = 0, .translate = 0, .scale = {1, 1}, .shear = 0};
  ASSERT_TRUE(RandAffine(still, kAnyKey, image, &out).ok());
  EXPECT_EQ(out.pixels, image.pixels);
}

TEST(Transforms, AffineMagnifiesAboutTheCentre) {
  Image out;
  const RandAffineOptions twice{.degrees = 0, .translate = 0, .scale = {2, 2}, .shear = 0};
  // Pixel centres 0.5, 1.5, ... about 2 halve their distance: 1.25, 1.75, 2.25, 2.75.
  ASSERT_TRUE(RandAffine(twice, kAnyKey, Make({1, 1, 4}, {0, 40, 80, 120}), &out).ok());
  EXPECT_EQ(out.pixels, (Pixels{30, 50, 70, 90}));
}

TEST(Transforms, NormalizeUsesEachChannelsConstants) {
  float values[3];
  NormalizeImage({}, Make({3, 1, 1}, {128, 128, 128}), values);
  EXPECT_NEAR(values[0], 0.0740646, 1e-6);
  EXPECT_NEAR(values[2], 0.4264924, 1e-6);
  NormalizeImage({.scale = 1, .mean = {28}, .std = {10}}, Make({3, 1, 1}, {128, 28, 18}), values);
  EXPECT_EQ(values[0], 10);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], -1);
}

TEST(Transforms, ColorJitterWithoutRangesIsTheIdentity) {
  Image out;
  const Image image = Counting({3, 5, 7});
  ASSERT_TRUE(
      ColorJitter({.brightness = 0, .contrast = 0, .saturation = 0}, kAnyKey, image, &out).ok());
  EXPECT_EQ(out.pixels, image.pixels);
}

TEST(Transforms, ErasingClearsOneRectangleOfTheGivenArea) {
  const ImageShape shape{2, 20, 30};
  for (uint64_t k = 0; k < 100; ++k) {
    std::vector<float> values(static_cast<size_t>(shape.count()), 1.0f);
    RandomErasing({.probability = 1}, RandomKey(k), shape, values.data());
    const double erased = static_cast<double>(std::count(values.begin(), values.end(), 0.0f)) /
                          static_cast<double>(shape.count());
    EXPECT_GT(erased, 0.01);
    EXPECT_LT(erased, 0.45);
  }
}

template <typename Options>
Section Step(const char* name, const Options& options) {
  return {name, AnyStruct::Of(options)};
}

const Section kDecode = Step("DecodeImage", DecodeImageOptions{});
const Section kNormalize = Step("NormalizeImage", NormalizeImageOptions{});
const Section kCrop = Step("CropImage", CropImageOptions{.size = 20});

std::string Fault(const std::vector<Section>& list,
                  std::optional<ImageShape> generated = std::nullopt) {
  const auto shape = CheckTransforms(list, generated);
  return shape.ok() ? "" : MessageOf(shape.status());
}

TEST(Pipeline, GivesTheShapeBeforeAnythingIsRead) {
  const auto shape = CheckTransforms(std::vector<Section>{
      kDecode, Step("ResizeImage", ResizeImageOptions{.resize_short = 256}),
      Step("CropImage", CropImageOptions{}), kNormalize, Step("ToCHWImage", NoAttrs{})});
  ASSERT_TRUE(shape.ok()) << MessageOf(shape.status());
  EXPECT_EQ(*shape, (ImageShape{3, 224, 224}));
  EXPECT_EQ(*CheckTransforms({}, ImageShape{1, 28, 28}), (ImageShape{1, 28, 28}));
}

TEST(Pipeline, NamesWhatIsWrongWithAList) {
  EXPECT_EQ(Fault({}), "transforms: DecodeImage is missing");
  EXPECT_NE(Fault({kCrop, kNormalize}).find("DecodeImage is missing"), std::string::npos);
  EXPECT_EQ(Fault({kDecode, kCrop}), "transforms: NormalizeImage is missing");
  EXPECT_NE(Fault({kDecode, kCrop, kDecode}).find("must come first"), std::string::npos);
  EXPECT_NE(Fault({kDecode, kNormalize, kCrop}).find("before NormalizeImage"), std::string::npos);
  EXPECT_NE(Fault({kDecode, Step("RandomErasing", RandomErasingOptions{})}).find("after Normalize"),
            std::string::npos);
  EXPECT_NE(Fault({kDecode, kNormalize}).find("add one that fixes it"), std::string::npos);
  EXPECT_NE(Fault({kDecode, Step("ResizeImage", ResizeImageOptions{})}).find("either"),
            std::string::npos);
  EXPECT_NE(Fault({kDecode, kCrop, Step("CropImage", CropImageOptions{.size = 21}), kNormalize})
                .find("in transforms[2], CropImage"),
            std::string::npos);
  EXPECT_NE(Fault({kDecode, Step("Blur", NoAttrs{})}).find("no transform is 'Blur'"),
            std::string::npos);
  EXPECT_NE(Fault({kNormalize}, ImageShape{1, 8, 8}).find("mean: 3 numbers for 1 channel"),
            std::string::npos);
}

TEST(Pipeline, EveryChoiceHasADescription) {
  for (const DataChoice& choice : TransformChoices()) {
    EXPECT_GT(std::string(choice.doc).size(), 10u) << choice.name;
    EXPECT_EQ(choice.options->kind, Kind::kStruct);
  }
}

TEST(Pipeline, BgrSwapsTheChannelsThatNormalizationSees) {
  const auto pipeline = ImagePipeline::Create(
      std::vector<Section>{
          Step("DecodeImage", DecodeImageOptions{.to_rgb = false}),
          Step("NormalizeImage", NormalizeImageOptions{.scale = 1, .mean = {0}, .std = {1}})},
      ImageShape{3, 1, 1});
  ASSERT_TRUE(pipeline.ok()) << MessageOf(pipeline.status());
  Image image = Make({3, 1, 1}, {1, 2, 3}), scratch;
  ASSERT_TRUE(pipeline->TransformPixels(kAnyKey, &image, &scratch).ok());
  float values[3];
  pipeline->WriteValues(kAnyKey, image, values);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[2], 1);
}

}  // namespace
}  // namespace capstan
