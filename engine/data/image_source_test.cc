#include "engine/data/image_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/image_list.h"
#include "engine/data/loader.h"
#include "engine/data/synthetic.h"
#include "engine/data/transform_options.h"

namespace capstan {
namespace {

template <typename Options>
Section Step(const char* name, const Options& options) {
  return {name, AnyStruct::Of(options)};
}

// Every random transform, over files.
std::vector<Section> Augmented() {
  return {Step("DecodeImage", DecodeImageOptions{}),
          Step("RandCropImage", RandCropImageOptions{.size = 20}),
          Step("RandFlipImage", RandFlipImageOptions{}),
          Step("RandAffine", RandAffineOptions{.shear = 5}),
          Step("RandCropPad", RandCropPadOptions{.size = 16, .padding = 2}),
          Step("ColorJitter", ColorJitterOptions{.brightness = 0.4, .hue = 0.1}),
          Step("RandAugment", RandAugmentOptions{}),
          Step("AutoAugment", NoAttrs{}),
          Step("NormalizeImage", NormalizeImageOptions{}),
          Step("RandomErasing", RandomErasingOptions{}),
          Step("ToCHWImage", NoAttrs{})};
}

ImagePipeline PipelineOf(const std::vector<Section>& transforms,
                         std::optional<ImageShape> generated = std::nullopt) {
  auto pipeline = ImagePipeline::Create(transforms, generated);
  CHECK_OK(pipeline);
  return *std::move(pipeline);
}

// The pictures of testdata, eight times over, and a damaged one.
std::shared_ptr<const SampleSource> FileSource(SampleCache cache) {
  const std::filesystem::path list = std::filesystem::path(testing::TempDir()) / "source_list.txt";
  {
    std::ofstream file(list);
    for (int round = 0; round < 8; ++round) {
      for (int i = 1; i <= 8; ++i) file << "exif" << i << ".jpg " << i - 1 << '\n';
      file << "cmyk_mid.jpg 8\nreally_png.JPEG 9\n";
    }
    file << "trunc_half_base.jpg 9\n";
  }
  auto set = OpenImageDataset(
      {"image_list", AnyStruct::Of(ImageListOptions{.root = "engine/data/testdata",
                                                    .list = std::filesystem::absolute(list)})},
      10);
  CHECK_OK(set);
  auto source = ImageSource::Create(*std::move(set), PipelineOf(Augmented()), cache);
  CHECK_OK(source);
  return *std::move(source);
}

std::vector<float> ReadAll(const std::shared_ptr<const SampleSource>& source, int64_t workers,
                           size_t* bad) {
  auto loader = Loader::Create(source, {.sampler = {.batch_size = 7, .seed = 1},
                                        .loader = {.num_workers = workers},
                                        .bad_samples = {.limit = 0.1},
                                        .seed = 2,
                                        .end_epoch = 2});
  CHECK_OK(loader);
  std::vector<float> all;
  while ((*loader)->state().epoch < 2) {
    auto batch = (*loader)->Next();
    CHECK_OK(batch);
    if (*batch == nullptr) continue;
    const auto image = (*batch)->Get("image").Elements<float>();
    all.insert(all.end(), image.begin(), image.end());
    for (const int64_t label : (*batch)->Get("label").Elements<int64_t>()) {
      all.push_back(static_cast<float>(label));
    }
    for (const BadSample& b : (*batch)->bad) {
      ++*bad;
      EXPECT_NE(b.origin.find("trunc_half_base.jpg ("), std::string::npos) << b.origin;
      EXPECT_NE(b.reason.find("damaged JPEG"), std::string::npos) << b.reason;
    }
  }
  return all;
}

TEST(ImageSource, WorkersAndTheCacheNeverShow) {
  size_t bad = 0;
  const std::vector<float> wanted = ReadAll(FileSource(SampleCache::kNone), 0, &bad);
  EXPECT_EQ(wanted.size(), 2 * 11 * 7 * (3 * 16 * 16 + 1));
  EXPECT_LE(bad, 2u);
  for (const int64_t workers : {1, 3}) {
    for (const SampleCache cache : {SampleCache::kNone, SampleCache::kRam}) {
      size_t again = 0;
      EXPECT_EQ(ReadAll(FileSource(cache), workers, &again), wanted);
      EXPECT_EQ(again, bad);
    }
  }
}

TEST(ImageSource, BatchesAreChannelsLast) {
  auto set = OpenSynthetic({.shape = {3, 4, 5}, .samples = 6}, 10);
  CHECK_OK(set);
  const ImageShape shape{3, 4, 5};
  auto source = ImageSource::Create(*std::move(set), PipelineOf({}, shape), SampleCache::kNone);
  CHECK_OK(source);
  const ImageDataset& pictures = (*source)->dataset();
  Image image;
  std::string bytes;
  CHECK_OK(pictures.Load(1, &bytes, &image));
  auto loader = Loader::Create(*std::move(source),
                               {.sampler = {.mode = SamplerMode::kEvaluate, .batch_size = 4}});
  CHECK_OK(loader);
  const auto batch = (*loader)->Next();
  CHECK_OK(batch);
  const TensorView& view = (*batch)->Get("image");
  EXPECT_EQ(view.type.ToString(), "f32[4,3,4,5]{channels_last}");
  EXPECT_EQ((*batch)->Get("label").type.ToString(), "i64[4]");
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    EXPECT_NEAR(view.Elements<float>()[image.pixels.size() + i], image.pixels[i] / 127.5 - 1, 1e-6);
  }
}

TEST(ImageSource, TheDiskCacheIsNotThereYet) {
  auto set = OpenSynthetic({}, 10);
  CHECK_OK(set);
  const auto source = ImageSource::Create(*std::move(set), PipelineOf({}, ImageShape{3, 32, 32}),
                                          SampleCache::kDisk);
  EXPECT_EQ(MessageOf(source.status()), "loader.cache: disk is not supported yet; use ram or none");
}

TEST(ReadPicture, GivesABatchOfOne) {
  const ImagePipeline pipeline = PipelineOf(
      {Step("DecodeImage", DecodeImageOptions{}),
       Step("ResizeImage", ResizeImageOptions{.size = 4}),
       Step("NormalizeImage", NormalizeImageOptions{.scale = 1, .mean = {0}, .std = {1}})});
  const auto picture = ReadPicture("engine/data/testdata/really_png.JPEG", pipeline);
  ASSERT_TRUE(picture.ok()) << MessageOf(picture.status());
  EXPECT_EQ(picture->type().ToString(), "f32[1,3,4,4]{channels_last}");
  EXPECT_EQ(picture->Elements<float>()[1], 200);
  const auto missing = ReadPicture("none.jpg", pipeline);
  EXPECT_NE(MessageOf(missing.status()).find("none.jpg"), std::string::npos);
  const auto damaged = ReadPicture("engine/data/testdata/trunc_half_base.jpg", pipeline);
  EXPECT_NE(MessageOf(damaged.status()).find("trunc_half_base.jpg"), std::string::npos);
}

}  // namespace
}  // namespace capstan
