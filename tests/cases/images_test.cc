// Pictures as they come: how each reaches the model in training, evaluation and prediction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/image_list.h"
#include "engine/data/image_pipeline.h"
#include "engine/data/image_source.h"
#include "engine/data/loader.h"
#include "engine/data/transform_options.h"
#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Rgb = std::array<int, 3>;

const char kImages[] = "tests/cases/images/";

template <typename Options>
Section Step(const char* name, const Options& options) {
  return {name, AnyStruct::Of(options)};
}

// Values are the pixels themselves.
Section Plain() {
  return Step("NormalizeImage", NormalizeImageOptions{.scale = 1, .mean = {0}, .std = {1}});
}

ImagePipeline PipelineOf(const std::vector<Section>& list) {
  auto pipeline = ImagePipeline::Create(list);
  CHECK_OK(pipeline);
  return *std::move(pipeline);
}

ImagePipeline ScaledTo(int64_t size) {
  return PipelineOf({Step("DecodeImage", DecodeImageOptions{}),
                     Step("ResizeImage", ResizeImageOptions{.size = size}), Plain()});
}

// A picture as `predict` sees it.
HostTensor Predicted(const std::string& name, const ImagePipeline& pipeline) {
  auto tensor = ReadPicture(kImages + name, pipeline);
  CHECK_OK(tensor);
  return *std::move(tensor);
}

// A picture as training or evaluation sees it.
HostTensor Loaded(const std::string& name, const ImagePipeline& pipeline, SamplerMode mode) {
  const JobFolder folder("loaded");
  folder.Write("list.txt", name + " 0\n");
  auto set = OpenImageDataset(
      {"image_list",
       AnyStruct::Of(ImageListOptions{.root = kImages, .list = folder.Path("list.txt")})},
      1);
  CHECK_OK(set);
  auto source = ImageSource::Create(*std::move(set), pipeline, SampleCache::kNone);
  CHECK_OK(source);
  auto loader = Loader::Create(*std::move(source), {.sampler = {.mode = mode}});
  CHECK_OK(loader);
  const auto batch = (*loader)->Next();
  CHECK_OK(batch);
  const TensorView& image = (*batch)->Get("image");
  HostTensor copy(image.type);
  std::copy_n(image.Data<float>(), image.type.shape.count(), copy.Elements<float>().data());
  return copy;
}

Rgb At(const HostTensor& image, int64_t y, int64_t x) {
  const int64_t width = image.type().shape[3];
  const auto values = image.Elements<float>().subspan(static_cast<size_t>(y * width + x) * 3);
  return {static_cast<int>(values[0]), static_cast<int>(values[1]), static_cast<int>(values[2])};
}

void ExpectNear(const Rgb& actual, const Rgb& wanted, int tolerance) {
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(actual[c], wanted[c], tolerance) << "channel " << c;
}

TEST(Images, InksBecomeRgb) {  // IMG-01
  for (const auto& [name, wanted] :
       std::vector<std::pair<std::string, Rgb>>{{"cmyk_red.jpg", {255, 0, 0}},
                                                {"cmyk_white.jpg", {255, 255, 255}},
                                                {"cmyk_black_k.jpg", {0, 0, 0}},
                                                {"cmyk_mid.jpg", {223, 167, 111}}}) {
    SCOPED_TRACE(name);
    const HostTensor image = Predicted(name, ScaledTo(16));
    ASSERT_EQ(image.type().shape, (Shape{1, 3, 16, 16}));
    for (int64_t i = 0; i < 16; ++i) ExpectNear(At(image, i, i), wanted, 3);
  }
}

TEST(Images, ContentDecidesNotTheName) {  // IMG-02
  ExpectNear(At(Predicted("really_png.JPEG", ScaledTo(4)), 1, 2), {10, 200, 30}, 0);
  EXPECT_EQ(Predicted("grey8.jpg", ScaledTo(4)).type().shape[1], 3);
}

// A job with 16 sound pictures and those given; validation on one sound picture.
void WriteJob(const JobFolder& job, const std::vector<std::string>& more) {
  std::string list;
  for (int i = 0; i < 16; ++i) list += fmt::format("red.jpg {}\n", i % 3);
  for (const std::string& name : more) list += name + " 0\n";
  job.CopyPicture("red.jpg", "red.jpg");
  job.Write("train.txt", list);
  job.Write("val.txt", "red.jpg 2\n");
  job.Write("job.yaml", job.Classification(3));
}

TEST(Images, UnreadableFilesFollowThePolicy) {  // IMG-02
  const JobFolder job("unreadable");
  job.CopyPicture("really_png.JPEG", "x.JPEG");
  job.CopyPicture("html.jpg", "y.jpg");
  job.CopyPicture("zero.jpg", "z.jpg");
  WriteJob(job, {"x.JPEG", "y.jpg", "z.jpg", "missing.jpg"});

  // 3 of 20 samples are bad: more than the default limit allows.
  const Outcome refused = job.Run("train");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_LT(refused.seconds, 10);
  EXPECT_THAT(refused.output, HasSubstr("bad_samples.limit 0.001"));
  EXPECT_THAT(refused.output, HasSubstr("(train.txt:"));

  const std::string all = "-o dataset.train.bad_samples.limit=0.2 dataset.train.shuffle=false";
  const Outcome skipped = job.Run("train", all);
  EXPECT_EQ(skipped.status, 0) << skipped.output;
  const std::string log = job.Read("output/train.log");
  EXPECT_THAT(log, HasSubstr("y.jpg (train.txt:18): not a JPEG or PNG picture"));
  EXPECT_THAT(log, HasSubstr("z.jpg (train.txt:19): the file is empty"));
  EXPECT_THAT(log, HasSubstr("missing.jpg (train.txt:20): open "));
  EXPECT_THAT(log, HasSubstr("No such file or directory"));
  EXPECT_THAT(log, testing::Not(HasSubstr("skipped x.JPEG")));

  const JobFolder strict("strict");
  WriteJob(strict, {"missing.jpg", "missing.jpg"});
  const Outcome failed = strict.Run("train", "-o dataset.train.bad_samples.policy=fail");
  EXPECT_EQ(failed.status, 3) << failed.output;
  EXPECT_THAT(failed.output, HasSubstr("bad_samples.policy: fail"));
}

TEST(Images, CheckDataFindsAllOfThemAtOnce) {  // LBL-04, IMG-02, IMG-04
  const JobFolder job("check_data");
  job.CopyPicture("really_png.JPEG", "x.JPEG");
  job.CopyPicture("html.jpg", "y.jpg");
  job.CopyPicture("zero.jpg", "z.jpg");
  job.CopyPicture("trunc_half_base.jpg", "half.jpg");
  WriteJob(job, {"x.JPEG", "y.jpg", "z.jpg", "missing.jpg", "half.jpg"});
  const Outcome pictures = job.Run("check-data");
  EXPECT_EQ(pictures.status, 3) << pictures.output;
  for (const char* text :
       {"y.jpg (train.txt:18): not a JPEG or PNG picture",
        "z.jpg (train.txt:19): the file is empty", "missing.jpg (train.txt:20): open ",
        "half.jpg (train.txt:21): damaged JPEG", "dataset.train (", "): 17 of 21 samples are sound",
        "1  file that is no picture; first: y.jpg (train.txt:18)", "bad by class: 0: 4 of 11\n",
        "more than bad_samples.limit 0.001 allows: a run ends", "): 1 of 1 samples are sound",
        "2 of 3 classes have no sample: 0, 1\n"}) {
    EXPECT_THAT(pictures.output, HasSubstr(text));
  }

  job.Write("train.txt", "red.jpg 0\nred.jpg 3\nmissing.jpg 1\nred.jpg\n");
  job.Write("val.txt", "");
  const Outcome rows = job.Run("check-data");
  EXPECT_EQ(rows.status, 3) << rows.output;
  for (const char* text : {"train.txt:2: class id 3 is outside 0..2", "train.txt:4: no delimiter",
                           "missing.jpg (train.txt:3): open ", "1 of 4 samples are sound",
                           "1  class id out of range\n", "a run refuses this data set",
                           "val.txt: the image list is empty"}) {
    EXPECT_THAT(rows.output, HasSubstr(text));
  }

  job.Write("train.txt", "red.jpg 0\nred.jpg 1\nred.jpg 2\n");
  job.Write("val.txt", "red.jpg 0\nred.jpg 1\nred.jpg 2\n");
  const Outcome sound = job.Run("check-data");
  EXPECT_EQ(sound.status, 0) << sound.output;
  EXPECT_THAT(sound.output, HasSubstr("3 of 3 samples are sound\n"));
}

TEST(Images, EvaluationLeavesBadSamplesOutAndSaysSo) {  // IMG-02
  const JobFolder job("evaluation");
  WriteJob(job, {});
  job.Write("val.txt", "red.jpg 0\nmissing.jpg 0\nred.jpg 1\n");
  const Outcome out = job.Run("train", "-o dataset.eval.bad_samples.limit=0.5");
  EXPECT_EQ(out.status, 0) << out.output;
  EXPECT_THAT(job.Read("output/train.log"), HasSubstr("missing.jpg (val.txt:2)"));
  EXPECT_THAT(job.Read("output/metrics.jsonl"), HasSubstr("\"samples\":2"));
}

TEST(Images, ExifOrientationIsAppliedAtEveryStage) {  // IMG-03
  const auto color = [](char c) {
    return c == 'R'   ? Rgb{255, 0, 0}
           : c == 'G' ? Rgb{0, 255, 0}
           : c == 'B' ? Rgb{0, 0, 255}
                      : Rgb{255, 255, 255};
  };
  const std::array<std::string, 8> quadrants = {"RGBW", "GRWB", "WBGR", "BWRG",
                                                "RBGW", "BRWG", "WGBR", "GWRB"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::string name = fmt::format("exif{}.jpg", orientation);
    const ImagePipeline pipeline = ScaledTo(16);
    const HostTensor predicted = Predicted(name, pipeline);
    const std::string& q = quadrants[static_cast<size_t>(orientation - 1)];
    for (int i = 0; i < 4; ++i) {
      ExpectNear(At(predicted, i / 2 == 0 ? 2 : 13, i % 2 == 0 ? 2 : 13),
                 color(q[static_cast<size_t>(i)]), 8);
    }
    for (const SamplerMode mode : {SamplerMode::kTrain, SamplerMode::kEvaluate}) {
      const HostTensor loaded = Loaded(name, pipeline, mode);
      EXPECT_TRUE(std::ranges::equal(loaded.Elements<float>(), predicted.Elements<float>()));
    }
  }
}

TEST(Images, ATruncatedPictureIsNotTrainedOn) {  // IMG-04
  const JobFolder job("truncated");
  job.CopyPicture("trunc_half_base.jpg", "half.jpg");
  WriteJob(job, {"half.jpg", "half.jpg"});
  const Outcome refused = job.Run("train");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("damaged JPEG"));
  const Outcome skipped =
      job.Run("train", "-o dataset.train.bad_samples.limit=0.2 checkpoint.resume=none");
  EXPECT_EQ(skipped.status, 0) << skipped.output;
  EXPECT_THAT(job.Read("output/train.log"),
              HasSubstr("skipped half.jpg (train.txt:17): damaged JPEG"));
}

TEST(Images, ResizeHasHalfPixelCentresAndNoAntialias) {  // IMG-05
  for (const auto& [size, wanted] : std::vector<std::pair<int64_t, std::vector<float>>>{
           {2, {5, 25}}, {6, {0, 5, 12, 18, 25, 30}}}) {
    const HostTensor image = Predicted("row4.png", ScaledTo(size));
    for (int64_t x = 0; x < size; ++x) {
      EXPECT_EQ(At(image, 0, x)[0], wanted[static_cast<size_t>(x)]) << size << " " << x;
    }
  }
}

TEST(Images, TransformsAreCheckedBeforeAnythingIsRead) {
  const JobFolder job("order");  // the lists do not exist
  const std::string text = job.Classification(3);
  const auto run = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    for (size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size()) {
      changed.replace(at, from.size(), to);
    }
    job.Write("job.yaml", changed);
    const Outcome out = job.Run("train");
    EXPECT_EQ(out.status, 2) << out.output;
    return out.output;
  };
  // Both lists at once, each at its line.
  const std::string swapped = run("- ResizeImage: {size: 8}\n      - NormalizeImage: {}",
                                  "- NormalizeImage: {}\n      - ResizeImage: {size: 8}");
  const std::string problem =
      ".transforms.2.ResizeImage: works on 8-bit pixels, but they are floats since NormalizeImage "
      "(transforms[1]); move it before";
  EXPECT_THAT(swapped, HasSubstr("job.yaml:12:9: dataset.train" + problem));
  EXPECT_THAT(swapped, HasSubstr("job.yaml:21:9: dataset.eval" + problem));
  EXPECT_THAT(run("      - NormalizeImage: {}\n", ""),
              HasSubstr("the list ends with 8-bit pixels: NormalizeImage is missing"));
  EXPECT_THAT(run("{size: 8}", "{resize_short: 8}"),
              HasSubstr("pictures of different sizes cannot make a batch"));
}

TEST(Images, ChannelZeroIsRedAndHasItsOwnConstants) {  // IMG-05
  const Rgb red = At(Predicted("red.jpg", ScaledTo(4)), 0, 0);
  ExpectNear(red, {254, 0, 0}, 1);
  const ImagePipeline pipeline = PipelineOf({Step("DecodeImage", DecodeImageOptions{}),
                                             Step("ResizeImage", ResizeImageOptions{.size = 1}),
                                             Step("NormalizeImage", NormalizeImageOptions{})});
  const HostTensor grey = Predicted("grey8.jpg", pipeline);
  const HostTensor pixel = Predicted("grey8.jpg", ScaledTo(1));
  const auto values = grey.Elements<float>();
  const double v = At(pixel, 0, 0)[0] / 255.0;
  EXPECT_NEAR(values[0], (v - 0.485) / 0.229, 1e-6);
  EXPECT_NEAR(values[2], (v - 0.406) / 0.225, 1e-6);
}

TEST(Images, ExtremeShapes) {  // IMG-06
  const ImagePipeline pipeline = PipelineOf(
      {Step("DecodeImage", DecodeImageOptions{}),
       Step("RandCropImage", RandCropImageOptions{.size = 32}),
       Step("RandFlipImage", RandFlipImageOptions{}), Step("RandAffine", RandAffineOptions{}),
       Step("ColorJitter", ColorJitterOptions{.contrast = 0.4, .hue = 0.2}),
       Step("RandAugment", RandAugmentOptions{.num_layers = 4, .magnitude = 10}),
       Step("AutoAugment", NoAttrs{}), Step("NormalizeImage", NormalizeImageOptions{}),
       Step("RandomErasing", RandomErasingOptions{})});
  for (const std::string name : {"one.png", "wide.png", "tall.png"}) {
    const JobFolder folder("extreme");
    folder.Write("list.txt", name + " 0\n");
    auto set = OpenImageDataset(
        {"image_list",
         AnyStruct::Of(ImageListOptions{.root = kImages, .list = folder.Path("list.txt")})},
        1);
    CHECK_OK(set);
    auto source = ImageSource::Create(*std::move(set), pipeline, SampleCache::kNone);
    CHECK_OK(source);
    auto loader = Loader::Create(*std::move(source), {.end_epoch = 200});
    CHECK_OK(loader);
    int64_t seen = 0;
    while ((*loader)->state().epoch < 200) {
      const auto batch = (*loader)->Next();
      ASSERT_TRUE(batch.ok()) << name << ": " << MessageOf(batch.status());
      if (*batch == nullptr) continue;
      ++seen;
      for (const float v : (*batch)->Get("image").Elements<float>()) ASSERT_TRUE(std::isfinite(v));
    }
    EXPECT_EQ(seen, 200) << name;
  }
}

}  // namespace
}  // namespace capstan
