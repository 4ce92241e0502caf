// Options of the transforms of pictures, by the names that PaddleClas gives them. Each struct is
// the only place of its defaults.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/reflect.h"

namespace capstan {

inline constexpr Bounds kShare{.min = 0, .max = 1};

struct DecodeImageOptions {
  bool to_rgb = true;
  bool channel_first = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&DecodeImageOptions::to_rgb>("to_rgb", "order of the channels: RGB, else BGR"),
        Field<&DecodeImageOptions::channel_first>(
            "channel_first", "must be false; the order in memory is the engine's affair")};
  }
};

struct ResizeImageOptions {
  int64_t resize_short = 0;
  int64_t size = 0;
  bool antialias = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&ResizeImageOptions::resize_short>(
            "resize_short", "new length of the shorter side, proportions kept", kNonNegative),
        Field<&ResizeImageOptions::size>("size", "new height and width, proportions not kept",
                                         kNonNegative),
        Field<&ResizeImageOptions::antialias>("antialias",
                                              "whether scaling down averages all pixels")};
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
  bool antialias = false;
  static constexpr auto Fields() {
    return std::array{
        Field<&RandCropImageOptions::size>("size", "height and width of the result", kAtLeastOne),
        Field<&RandCropImageOptions::scale>("scale", "range of the share of the area that is kept",
                                            Bounds{.min = 0, .max = 1, .open_min = true}),
        Field<&RandCropImageOptions::ratio>("ratio", "range of width / height", kPositive),
        Field<&RandCropImageOptions::antialias>("antialias",
                                                "whether scaling down averages all pixels")};
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
  double brightness = 0.4;
  double contrast = 0.4;
  double saturation = 0.4;
  static constexpr auto Fields() {
    return std::array{
        Field<&ColorJitterOptions::brightness>("brightness", "factor 1 - b to 1 + b", kShare),
        Field<&ColorJitterOptions::contrast>("contrast", "the same, around the mean grey", kShare),
        Field<&ColorJitterOptions::saturation>("saturation", "the same, around each pixel's grey",
                                               kShare)};
  }
};

struct NormalizeImageOptions {
  double scale = 1.0 / 255;
  std::vector<double> mean = {0.485, 0.456, 0.406};
  std::vector<double> std = {0.229, 0.224, 0.225};
  std::string order;
  static constexpr auto Fields() {
    return std::array{
        Field<&NormalizeImageOptions::scale>("scale", "value = (pixel * scale - mean) / std",
                                             kPositive),
        Field<&NormalizeImageOptions::mean>("mean", "one number, or one a channel"),
        Field<&NormalizeImageOptions::std>("std", "one number, or one a channel", kPositive),
        Field<&NormalizeImageOptions::order>(
            "order", "chw, hwc or empty; accepted, as the order in memory is the engine's affair")};
  }
};

struct RandomErasingOptions {
  double probability = 0.5;
  std::vector<double> area = {0.02, 0.4};
  std::vector<double> ratio = {0.3, 1.0 / 0.3};
  static constexpr auto Fields() {
    return std::array{
        Field<&RandomErasingOptions::probability>("probability", "of erasing anything", kShare),
        Field<&RandomErasingOptions::area>("area", "range of the share of the area erased",
                                           Bounds{.min = 0, .max = 1, .open_min = true}),
        Field<&RandomErasingOptions::ratio>("ratio", "range of width / height", kPositive)};
  }
};

}  // namespace capstan
