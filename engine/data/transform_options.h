// Options of the transforms of pictures, by the names that PaddleClas gives them. Each struct is
// the only place of its defaults.
// Source of the names and defaults: PaddleClas, ppcls/data/preprocess/ops.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/reflect.h"

namespace capstan {

inline constexpr Bounds kShare{.min = 0, .max = 1};

// How pixels are made from their neighbours when a picture is scaled.
enum class Interpolation { kNearest, kBilinear, kBicubic, kArea, kLanczos };
constexpr std::array<const char*, 5> EnumNamesOf(Interpolation) {
  return {"nearest", "bilinear", "bicubic", "area", "lanczos"};
}
inline constexpr char kAntialiasDoc[] = "whether scaling down averages all pixels, as Pillow does";
inline constexpr char kInterpolationDoc[] =
    "how pixels are made from their neighbours; half-pixel centres";

struct DecodeImageOptions {
  bool to_rgb = true;
  bool channel_first = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&DecodeImageOptions::to_rgb>("to_rgb", "order of the channels: RGB, else BGR"),
        Field<&DecodeImageOptions::channel_first>(
            "channel_first", "CHW at once; NormalizeImage is then the only step that may follow")};
  }
};

struct ResizeImageOptions {
  int64_t resize_short = 0;
  int64_t size = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&ResizeImageOptions::resize_short>(
            "resize_short", "new length of the shorter side, proportions kept", kNonNegative),
        Field<&ResizeImageOptions::size>("size", "new height and width, proportions not kept",
                                         kNonNegative),
        Field<&ResizeImageOptions::interpolation>("interpolation", kInterpolationDoc),
        Field<&ResizeImageOptions::antialias>("antialias", kAntialiasDoc)};
  }
};

struct CropImageOptions {
  int64_t size = 224;
  static constexpr auto Fields() {
    return std::array{
        Field<&CropImageOptions::size>("size", "height and width of the centre kept", kAtLeastOne)};
  }
};

struct RandCropImageOptions {
  int64_t size = 224;
  std::vector<double> scale = {0.08, 1.0};
  std::vector<double> ratio = {3.0 / 4, 4.0 / 3};
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&RandCropImageOptions::size>("size", "height and width of the result", kAtLeastOne),
        Field<&RandCropImageOptions::scale>("scale", "range of the share of the area that is kept",
                                            Bounds{.min = 0, .max = 1, .open_min = true}),
        Field<&RandCropImageOptions::ratio>("ratio", "range of width / height", kPositive),
        Field<&RandCropImageOptions::interpolation>("interpolation", kInterpolationDoc),
        Field<&RandCropImageOptions::antialias>("antialias", kAntialiasDoc)};
  }
};

struct RandFlipImageOptions {
  int64_t flip_code = 1;
  static constexpr auto Fields() {
    return std::array{Field<&RandFlipImageOptions::flip_code>(
        "flip_code", "with probability 1/2: 1 left-right, 0 upside down, -1 both",
        Bounds{.min = -1, .max = 1})};
  }
};

struct RandCropPadOptions {
  int64_t size = 32;
  int64_t padding = 4;
  static constexpr auto Fields() {
    return std::array{
        Field<&RandCropPadOptions::size>("size", "height and width of the part kept", kAtLeastOne),
        Field<&RandCropPadOptions::padding>("padding", "black pixels added at each side before",
                                            kNonNegative)};
  }
};

struct RandAffineOptions {
  double degrees = 10;
  double translate = 0.1;
  std::vector<double> scale = {0.9, 1.1};
  double shear = 0;
  static constexpr auto Fields() {
    return std::array{
        Field<&RandAffineOptions::degrees>("degrees", "largest turn, either way",
                                           Bounds{.min = 0, .max = 180}),
        Field<&RandAffineOptions::translate>("translate", "largest shift, as a share of each side",
                                             kShare),
        Field<&RandAffineOptions::scale>("scale", "range of the magnification", kPositive),
        Field<&RandAffineOptions::shear>("shear", "largest shear along x in degrees, either way",
                                         Bounds{.min = 0, .max = 80})};
  }
};

struct ColorJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
  static constexpr auto Fields() {
    return std::array{
        Field<&ColorJitterOptions::brightness>(
            "brightness", "factor from max(0, 1 - b) to 1 + b, about black", kNonNegative),
        Field<&ColorJitterOptions::contrast>("contrast", "the same, about the mean grey",
                                             kNonNegative),
        Field<&ColorJitterOptions::saturation>("saturation", "the same, about each pixel's grey",
                                               kNonNegative),
        Field<&ColorJitterOptions::hue>("hue",
                                        "largest turn of the hue, either way; 1 is the circle",
                                        Bounds{.min = 0, .max = 0.5})};
  }
};

struct RandAugmentOptions {
  int64_t num_layers = 2;
  double magnitude = 5;
  static constexpr auto Fields() {
    return std::array{
        Field<&RandAugmentOptions::num_layers>("num_layers", "changes made to each picture",
                                               Bounds{.min = 1, .max = 14}),
        Field<&RandAugmentOptions::magnitude>("magnitude", "strength of each, up to 10",
                                              Bounds{.min = 0, .max = 10})};
  }
};

struct NormalizeImageOptions {
  double scale = 1.0 / 255;
  std::vector<double> mean = {0.485, 0.456, 0.406};
  std::vector<double> std = {0.229, 0.224, 0.225};
  std::string order;
  std::optional<int64_t> channel_num;
  static constexpr auto Fields() {
    return std::array{
        Field<&NormalizeImageOptions::scale>("scale", "value = (pixel * scale - mean) / std",
                                             kPositive),
        Field<&NormalizeImageOptions::mean>("mean", "one number, or one a channel"),
        Field<&NormalizeImageOptions::std>("std", "one number, or one a channel", kPositive),
        Field<&NormalizeImageOptions::order>(
            "order", "chw or hwc: what the pixels must be by then; empty: whatever they are"),
        Field<&NormalizeImageOptions::channel_num>("channel_num", "what the pictures must have",
                                                   kAtLeastOne)};
  }
};

enum class ErasingMode { kConst, kRand, kPixel };
constexpr std::array<const char*, 3> EnumNamesOf(ErasingMode) { return {"const", "rand", "pixel"}; }

struct RandomErasingOptions {
  double epsilon = 0.5;
  double sl = 0.02;
  double sh = 0.4;
  double r1 = 0.3;
  std::vector<double> mean = {0};
  int64_t attempt = 100;
  bool use_log_aspect = false;
  ErasingMode mode = ErasingMode::kConst;
  static constexpr auto Fields() {
    return std::array{
        Field<&RandomErasingOptions::epsilon>("EPSILON", "probability of erasing anything", kShare),
        Field<&RandomErasingOptions::sl>("sl", "smallest share of the area", kShare),
        Field<&RandomErasingOptions::sh>("sh", "largest share of the area", kShare),
        Field<&RandomErasingOptions::r1>("r1", "height / width is drawn from r1 to 1 / r1",
                                         Bounds{.min = 0, .max = 1, .open_min = true}),
        Field<&RandomErasingOptions::mean>("mean",
                                           "values written (mode const), one or one a channel"),
        Field<&RandomErasingOptions::attempt>(
            "attempt", "rectangles drawn until one is smaller than the picture",
            Bounds{.min = 1, .max = 1000}),
        Field<&RandomErasingOptions::use_log_aspect>("use_log_aspect",
                                                     "draw height / width evenly in its logarithm"),
        Field<&RandomErasingOptions::mode>(
            "mode",
            "what is written: const: `mean`; rand: one normal draw a channel; "
            "pixel: a normal draw for each value")};
  }
};

}  // namespace capstan
