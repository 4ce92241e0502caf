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

Pixels ScaledTo(const Image& in, int64_t height, int64_t width,
                const ResampleOptions& options = {}) {
  Image out;
  Resample(in, {0, 0, in.shape.width, in.shape.height}, height, width, options, &out);
  return out.pixels;
}

TEST(Resample, HalfPixelCentresWithoutAntialias) {
  const Image row = Make({1, 1, 4}, {0, 10, 20, 30});
  EXPECT_EQ(ScaledTo(row, 1, 2), (Pixels{5, 25}));
  EXPECT_EQ(ScaledTo(row, 1, 6), (Pixels{0, 5, 12, 18, 25, 30}));
  EXPECT_EQ(ScaledTo(row, 1, 4), row.pixels);
  EXPECT_EQ(ScaledTo(row, 1, 2, {.antialias = true}), (Pixels{7, 23}));
  const Image column = Make({1, 4, 1}, {0, 10, 20, 30});
  EXPECT_EQ(ScaledTo(column, 2, 1), (Pixels{5, 25}));
  EXPECT_EQ(ScaledTo(column, 6, 1), (Pixels{0, 5, 12, 18, 25, 30}));
}

TEST(Resample, EveryShapeOfFlatColorStaysFlat) {
  for (const auto& [height, width] : {std::pair(1, 1), {1, 2000}, {2000, 2}, {7, 5}}) {
    for (const bool antialias : {false, true}) {
      for (size_t how = 0; how < EnumNamesOf(Interpolation{}).size(); ++how) {
        const Image flat =
            Make({3, height, width}, Pixels(static_cast<size_t>(3 * height * width), 200));
        const Pixels out = ScaledTo(flat, 32, 20, {static_cast<Interpolation>(how), antialias});
        EXPECT_EQ(out, Pixels(3 * 32 * 20, 200)) << height << "x" << width << " way " << how;
      }
    }
  }
}

TEST(Resample, Interpolations) {
  const Image row = Make({1, 1, 4}, {0, 10, 20, 30});
  EXPECT_EQ(ScaledTo(row, 1, 2, {Interpolation::kNearest}), (Pixels{10, 30}));
  EXPECT_EQ(ScaledTo(row, 1, 8, {Interpolation::kNearest}), (Pixels{0, 0, 10, 10, 20, 20, 30, 30}));
  // Each output pixel covers 4/3 of the input's: (0 + 10 / 3) / (4/3) and so on.
  EXPECT_EQ(ScaledTo(row, 1, 3, {Interpolation::kArea}), (Pixels{3, 15, 28}));
  EXPECT_EQ(ScaledTo(row, 1, 6, {Interpolation::kArea}), (Pixels{0, 5, 12, 18, 25, 30}));
  const Image edge = Make({1, 1, 6}, {64, 64, 64, 192, 192, 192});
  const Pixels cubic = ScaledTo(edge, 1, 12, {Interpolation::kBicubic});
  // The pixel at 2.25: 64 + 128 * (weights of 192: w(0.75) + w(1.75)), a = -0.75.
  EXPECT_EQ(cubic[5], 64 + std::lround(128 * 0.2265625));
  EXPECT_EQ(ScaledTo(edge, 1, 6, {Interpolation::kBicubic}), edge.pixels);
  EXPECT_EQ(ScaledTo(edge, 1, 6, {Interpolation::kLanczos}), edge.pixels);
  // Overshoot is cut to the range of pixels.
  const Image sharp = Make({1, 1, 4}, {0, 0, 255, 255});
  for (const Interpolation how : {Interpolation::kBicubic, Interpolation::kLanczos}) {
    const Pixels out = ScaledTo(sharp, 1, 16, {how});
    for (size_t x = 0; x < 8; ++x) EXPECT_LT(out[x], 128);
    for (size_t x = 8; x < 16; ++x) EXPECT_GT(out[x], 127);
  }
}

TEST(Resample, ReadsTheRegionOnly) {
  const Image image = Counting({3, 4, 5});
  Image out;
  Resample(image, {1, 2, 3, 2}, 2, 3, {}, &out);
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
  ASSERT_TRUE(ColorJitter({}, kAnyKey, image, &out).ok());
  EXPECT_EQ(out.pixels, image.pixels);
}

TEST(Transforms, ColorJitterStaysInItsRange) {
  // Grey pixels keep their color, whatever the saturation and the hue.
  const Image grey = Make({3, 1, 2}, {100, 100, 100, 50, 50, 50});
  double least = 2, most = 0;
  for (uint64_t k = 0; k < 300; ++k) {
    Image out;
    const ColorJitterOptions options{.brightness = 0.5, .saturation = 0.9, .hue = 0.5};
    ASSERT_TRUE(ColorJitter(options, RandomKey(k), grey, &out).ok());
    EXPECT_EQ(out.pixels[0], out.pixels[2]);
    least = std::min(least, out.pixels[0] / 100.0);
    most = std::max(most, out.pixels[0] / 100.0);
  }
  EXPECT_NEAR(least, 0.5, 0.02);
  EXPECT_NEAR(most, 1.5, 0.02);
}

TEST(Transforms, ErasingOverwritesOneRectangleOfTheGivenArea) {
  const ImageShape shape{2, 20, 30};
  for (const bool log_aspect : {false, true}) {
    for (uint64_t k = 0; k < 100; ++k) {
      std::vector<float> values(static_cast<size_t>(shape.count()), 1.0f);
      const RandomErasingOptions options{
          .epsilon = 1, .sl = 0.1, .sh = 0.2, .mean = {5, 7}, .use_log_aspect = log_aspect};
      RandomErasing(options, RandomKey(k), shape, values.data());
      const double erased = static_cast<double>(std::count(values.begin(), values.end(), 7.0f)) /
                            static_cast<double>(shape.height * shape.width);
      EXPECT_GT(erased, 0.08);
      EXPECT_LT(erased, 0.22);
      EXPECT_EQ(std::count(values.begin(), values.end(), 7.0f),
                std::count(values.begin(), values.end(), 5.0f));
    }
  }
}

TEST(Transforms, ErasingModes) {
  const ImageShape shape{3, 16, 16};
  for (const ErasingMode mode : {ErasingMode::kRand, ErasingMode::kPixel}) {
    std::vector<float> values(static_cast<size_t>(shape.count()), 1000.0f);
    RandomErasing({.epsilon = 1, .sl = 0.3, .sh = 0.3, .mode = mode}, kAnyKey, shape,
                  values.data());
    std::set<float> written(values.begin(), values.end());
    written.erase(1000.0f);
    const auto erased =
        values.size() - static_cast<size_t>(std::count(values.begin(), values.end(), 1000.0f));
    EXPECT_EQ(written.size(), mode == ErasingMode::kRand ? 3 : erased);
  }
  // Never, and no rectangle that is smaller than the picture.
  std::vector<float> values(static_cast<size_t>(shape.count()), 1.0f);
  RandomErasing({.epsilon = 0}, kAnyKey, shape, values.data());
  RandomErasing({.epsilon = 1, .sl = 1, .sh = 1}, kAnyKey, shape, values.data());
  EXPECT_EQ(std::count(values.begin(), values.end(), 1.0f), shape.count());
}

template <typename Options>
Section Step(const char* name, const Options& options) {
  return {name, AnyStruct::Of(options)};
}

const Section kDecode = Step("DecodeImage", DecodeImageOptions{});
const Section kNormalize = Step("NormalizeImage", NormalizeImageOptions{});
const Section kCrop = Step("CropImage", CropImageOptions{.size = 20});

// "2: what is wrong", or "".
std::string Fault(const std::vector<Section>& list,
                  std::optional<ImageShape> generated = std::nullopt) {
  const auto fault = FindTransformFault(list, generated);
  return fault.has_value() ? fmt::format("{}: {}", fault->step, fault->problem) : "";
}

ImageShape OutputOf(const std::vector<Section>& list,
                    std::optional<ImageShape> generated = std::nullopt) {
  const auto pipeline = ImagePipeline::Create(list, generated);
  CHECK_OK(pipeline);
  return pipeline->output();
}

TEST(Pipeline, GivesTheShapeBeforeAnythingIsRead) {
  EXPECT_EQ(
      OutputOf({kDecode, Step("ResizeImage", ResizeImageOptions{.resize_short = 256}),
                Step("CropImage", CropImageOptions{}), kNormalize, Step("ToCHWImage", NoAttrs{})}),
      (ImageShape{3, 224, 224}));
  EXPECT_EQ(OutputOf({}, ImageShape{1, 28, 28}), (ImageShape{1, 28, 28}));
}

TEST(Pipeline, NamesTheStepAtFaultAndTheMissingOne) {
  const Section to_chw = Step("ToCHWImage", NoAttrs{});
  const Section erase = Step("RandomErasing", RandomErasingOptions{});
  const auto normalize = [](const std::string& order) {
    return Step("NormalizeImage", NormalizeImageOptions{.order = order});
  };
  EXPECT_EQ(Fault({kDecode, kCrop, kNormalize, to_chw, erase}), "");
  EXPECT_EQ(Fault({kDecode, kCrop, to_chw, normalize("chw"), erase}), "");
  EXPECT_EQ(Fault({kDecode, kCrop, normalize("hwc")}), "");

  EXPECT_EQ(Fault({}), "0: DecodeImage is missing; it must come first");
  EXPECT_EQ(Fault({kCrop, kNormalize}),
            "0: works on a picture, but DecodeImage is missing; it must come first");
  EXPECT_EQ(Fault({kDecode, kCrop, kDecode}), "2: must come first, and once");
  EXPECT_EQ(Fault({kDecode, kNormalize, kCrop}),
            "2: works on 8-bit pixels, but they are floats since NormalizeImage (transforms[1]); "
            "move it before");
  EXPECT_EQ(Fault({kDecode, to_chw, kCrop, kNormalize}),
            "2: works on HWC, but the picture is CHW since ToCHWImage (transforms[1]); move it "
            "before");
  EXPECT_EQ(Fault({Step("DecodeImage", DecodeImageOptions{.channel_first = true}), kCrop}),
            "1: works on HWC, but the picture is CHW since DecodeImage (transforms[0]) "
            "{channel_first: true}; move it before");
  EXPECT_EQ(Fault({kDecode, kCrop, to_chw, kNormalize, to_chw}),
            "4: the picture is CHW already, since ToCHWImage (transforms[2]); remove one of the "
            "two");
  EXPECT_EQ(Fault({kDecode, kCrop, normalize("chw"), to_chw}),
            "2: order: chw, but the pixels are HWC here, for ToCHWImage is missing before it; use "
            "order: hwc or leave it out");
  EXPECT_EQ(Fault({kDecode, kCrop, to_chw, normalize("hwc")}),
            "3: order: hwc, but the pixels are CHW since ToCHWImage (transforms[2]); use order: "
            "chw or leave it out");
  EXPECT_EQ(Fault({kDecode, erase}), "1: works on floats, but NormalizeImage is missing before it");
  EXPECT_EQ(Fault({kDecode, kCrop}),
            "2: the list ends with 8-bit pixels: NormalizeImage is missing");
  EXPECT_EQ(
      Fault({kDecode, Step("ResizeImage", ResizeImageOptions{.resize_short = 8}), kNormalize}),
      "3: pictures of different sizes cannot make a batch: ResizeImage (transforms[1]) "
      "{resize_short: ...} leaves the size open, and a step that fixes it is missing: "
      "CropImage, RandCropImage, RandCropPad, or ResizeImage with `size`");
}

TEST(Pipeline, NamesWhatIsWrongWithOptions) {
  EXPECT_NE(Fault({kDecode, Step("ResizeImage", ResizeImageOptions{})}).find("either"),
            std::string::npos);
  EXPECT_EQ(Fault({kDecode, kCrop, Step("CropImage", CropImageOptions{.size = 21}), kNormalize}),
            "2: size 21 is larger than the picture, 20x20");
  EXPECT_EQ(Fault({kDecode, Step("Blur", NoAttrs{})}), "1: no transform is 'Blur'");
  EXPECT_EQ(Fault({kNormalize}, ImageShape{1, 8, 8}), "0: mean: 3 numbers for 1 channel(s)");
  EXPECT_EQ(Fault({kDecode, Step("NormalizeImage", NormalizeImageOptions{.channel_num = 4})}),
            "1: channel_num: 4, but the pictures have 3 channel(s)");
  EXPECT_NE(Fault({kDecode, Step("ColorJitter", ColorJitterOptions{})}).find("changes nothing"),
            std::string::npos);
  EXPECT_NE(Fault({kDecode, kCrop, kNormalize,
                   Step("RandomErasing", RandomErasingOptions{.sl = 0.5, .sh = 0.4})})
                .find("sl 0.5 is more than sh 0.4"),
            std::string::npos);
  EXPECT_EQ(
      MessageOf(ImagePipeline::Create(std::vector<Section>{kDecode, kNormalize, kCrop}).status())
          .substr(0, 26),
      "transforms[2], CropImage: ");
}

TEST(Pipeline, EveryChoiceHasADescription) {
  for (const DataChoice& choice : TransformChoices()) {
    EXPECT_GT(std::string(choice.doc).size(), 10u) << choice.name;
    EXPECT_EQ(choice.options->kind, Kind::kStruct);
  }
}

TEST(Pipeline, FixedStepsEndAtTheFirstThatDraws) {
  const auto pipeline = ImagePipeline::Create(
      std::vector<Section>{kDecode, Step("ResizeImage", ResizeImageOptions{.size = 30}), kCrop,
                           Step("RandCropPad", RandCropPadOptions{.size = 10, .padding = 0}),
                           Step("CropImage", CropImageOptions{.size = 4}), kNormalize});
  ASSERT_TRUE(pipeline.ok()) << MessageOf(pipeline.status());
  Image image = Counting({3, 7, 9}), scratch;
  ASSERT_TRUE(pipeline->TransformFixed(&image, &scratch).ok());
  EXPECT_EQ(image.shape, (ImageShape{3, 20, 20}));
  ASSERT_TRUE(pipeline->TransformRandom(kAnyKey, &image, &scratch).ok());
  EXPECT_EQ(image.shape, (ImageShape{3, 4, 4}));
}

TEST(Pipeline, BgrSwapsTheChannelsThatNormalizationSees) {
  const auto pipeline = ImagePipeline::Create(
      std::vector<Section>{
          Step("DecodeImage", DecodeImageOptions{.to_rgb = false}),
          Step("NormalizeImage", NormalizeImageOptions{.scale = 1, .mean = {0}, .std = {1}})},
      ImageShape{3, 1, 1});
  ASSERT_TRUE(pipeline.ok()) << MessageOf(pipeline.status());
  Image image = Make({3, 1, 1}, {1, 2, 3}), scratch;
  ASSERT_TRUE(pipeline->TransformFixed(&image, &scratch).ok());
  float values[3];
  pipeline->WriteValues(kAnyKey, image, values);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[2], 1);
}

}  // namespace
}  // namespace capstan
