#include "engine/data/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/pixel_ops.h"
#include "engine/data/resample.h"
#include "engine/data/warp.h"

namespace capstan {
namespace {

double Between(const RandomKey& key, uint64_t draw, double low, double high) {
  return low + (high - low) * key.UniformDouble(draw);
}

// Copies a part of `in`; what lies outside of it is black.
void CopyPart(const Image& in, const Box& box, Image* out) {
  const int64_t channels = in.shape.channels;
  out->Reset({channels, box.height, box.width});
  const int64_t begin = std::max<int64_t>(0, -box.x);
  const int64_t end = std::min(box.width, in.shape.width - box.x);
  const bool covers_rows = begin == 0 && end == box.width;
  for (int64_t y = 0; y < box.height; ++y) {
    const int64_t source = box.y + y;
    const bool inside = source >= 0 && source < in.shape.height && begin < end;
    if (!inside || !covers_rows) {
      std::memset(out->Row(y), 0, static_cast<size_t>(out->stride()));
    }
    if (!inside) continue;
    std::memcpy(out->Row(y) + begin * channels, in.Row(source) + (box.x + begin) * channels,
                static_cast<size_t>((end - begin) * channels));
  }
}

absl::Status TooSmall(const Image& in, int64_t size) {
  return InvalidArgument("the picture of {}x{} is smaller than the crop of {}x{}", in.shape.height,
                         in.shape.width, size, size);
}

// Writes what takes the place of erased values.
void Erase(const RandomErasingOptions& options, const RandomKey& key, const ImageShape& shape,
           const Box& box, float* values) {
  const auto channels = static_cast<size_t>(shape.channels);
  std::vector<float> color(channels);
  for (size_t c = 0; c < channels; ++c) {
    const double mean = options.mean[options.mean.size() == 1 ? 0 : c];
    color[c] =
        static_cast<float>(options.mode == ErasingMode::kConst ? mean : key.Normal(uint64_t{c}));
  }
  uint64_t draw = 0;
  for (int64_t y = box.y; y < box.y + box.height; ++y) {
    float* to = values + (y * shape.width + box.x) * shape.channels;
    for (int64_t x = 0; x < box.width; ++x, to += channels) {
      if (options.mode == ErasingMode::kPixel) {
        for (size_t c = 0; c < channels; ++c) to[c] = static_cast<float>(key.Normal(draw++));
      } else {
        std::copy(color.begin(), color.end(), to);
      }
    }
  }
}

}  // namespace

absl::Status ResizeImage(const ResizeImageOptions& options, const RandomKey&, const Image& in,
                         Image* out) {
  int64_t height = options.size, width = options.size;
  if (options.resize_short > 0) {
    const int64_t shorter = std::min(in.shape.height, in.shape.width);
    const auto scaled = [&](int64_t side) {
      return (2 * side * options.resize_short + shorter) / (2 * shorter);  // to nearest
    };
    height = scaled(in.shape.height);
    width = scaled(in.shape.width);
  }
  Resample(in, {0, 0, in.shape.width, in.shape.height}, height, width,
           {options.interpolation, options.antialias}, out);
  return absl::OkStatus();
}

absl::Status CropImage(const CropImageOptions& options, const RandomKey&, const Image& in,
                       Image* out) {
  const int64_t x = in.shape.width - options.size, y = in.shape.height - options.size;
  if (x < 0 || y < 0) return TooSmall(in, options.size);
  CopyPart(in, {x / 2, y / 2, options.size, options.size}, out);
  return absl::OkStatus();
}

Box RandCropBox(const RandCropImageOptions& options, const RandomKey& key, int64_t height,
                int64_t width) {
  const double h = static_cast<double>(height), w = static_cast<double>(width);
  const double ratio = Between(key, 0, options.ratio[0], options.ratio[1]);
  // Of a box with this ratio no more than this share fits; the range of areas is cut there.
  const double fits = std::min(h * ratio / w, w / (h * ratio));
  const double area =
      h * w * Between(key, 1, std::min(options.scale[0], fits), std::min(options.scale[1], fits));
  Box box;
  box.width = std::clamp(static_cast<int64_t>(std::sqrt(area * ratio)), int64_t{1}, width);
  box.height = std::clamp(static_cast<int64_t>(std::sqrt(area / ratio)), int64_t{1}, height);
  box.x = static_cast<int64_t>(key.Below(2, static_cast<uint64_t>(width - box.width + 1)));
  box.y = static_cast<int64_t>(key.Below(3, static_cast<uint64_t>(height - box.height + 1)));
  return box;
}

absl::Status RandCropImage(const RandCropImageOptions& options, const RandomKey& key,
                           const Image& in, Image* out) {
  const Box box = RandCropBox(options, key, in.shape.height, in.shape.width);
  Resample(in, box, options.size, options.size, {options.interpolation, options.antialias}, out);
  return absl::OkStatus();
}

absl::Status RandFlipImage(const RandFlipImageOptions& options, const RandomKey& key,
                           const Image& in, Image* out) {
  out->Reset(in.shape);
  const bool flip = key.UniformDouble(0) < 0.5;
  const bool rows = flip && options.flip_code <= 0, columns = flip && options.flip_code != 0;
  const auto channels = static_cast<size_t>(in.shape.channels);
  for (int64_t y = 0; y < in.shape.height; ++y) {
    const uint8_t* from = in.Row(rows ? in.shape.height - 1 - y : y);
    uint8_t* to = out->Row(y);
    if (!columns) {
      std::memcpy(to, from, static_cast<size_t>(in.stride()));
      continue;
    }
    from += in.stride();
    for (int64_t x = 0; x < in.shape.width; ++x, to += channels) {
      from -= channels;
      for (size_t c = 0; c < channels; ++c) to[c] = from[c];
    }
  }
  return absl::OkStatus();
}

absl::Status RandCropPad(const RandCropPadOptions& options, const RandomKey& key, const Image& in,
                         Image* out) {
  const int64_t x = in.shape.width + 2 * options.padding - options.size;
  const int64_t y = in.shape.height + 2 * options.padding - options.size;
  if (x < 0 || y < 0) return TooSmall(in, options.size);
  const auto draw = [&](uint64_t i, int64_t room) {
    return static_cast<int64_t>(key.Below(i, static_cast<uint64_t>(room + 1))) - options.padding;
  };
  CopyPart(in, {draw(0, x), draw(1, y), options.size, options.size}, out);
  return absl::OkStatus();
}

absl::Status RandAffine(const RandAffineOptions& options, const RandomKey& key, const Image& in,
                        Image* out) {
  constexpr double kRadians = std::numbers::pi / 180;
  const auto width = static_cast<double>(in.shape.width),
             height = static_cast<double>(in.shape.height);
  const double angle = Between(key, 0, -options.degrees, options.degrees) * kRadians;
  const double shift_x = Between(key, 1, -options.translate, options.translate) * width;
  const double shift_y = Between(key, 2, -options.translate, options.translate) * height;
  const double scale = Between(key, 3, options.scale[0], options.scale[1]);
  const double shear = std::tan(Between(key, 4, -options.shear, options.shear) * kRadians);
  // A picture's point p about its centre moves to scale * rotation * shear * p + shift; each output
  // pixel looks up where it comes from: p = shear^-1 * rotation^-1 / scale * (q - shift).
  const double c = std::cos(angle) / scale, s = std::sin(angle) / scale;
  Affine source{.xx = c + shear * s, .xy = s - shear * c, .yx = -s, .yy = c};
  const double x = width / 2, y = height / 2;
  source.x0 = x - source.xx * (x + shift_x) - source.xy * (y + shift_y);
  source.y0 = y - source.yx * (x + shift_x) - source.yy * (y + shift_y);
  Warp(in, source, 0, out);
  return absl::OkStatus();
}

absl::Status ColorJitter(const ColorJitterOptions& options, const RandomKey& key, const Image& in,
                         Image* out) {
  *out = in;
  const auto factor = [&](uint64_t draw, double range) {
    return Between(key, draw, std::max(0.0, 1 - range), 1 + range);
  };
  // The changes do not commute, so their order is drawn too.
  std::array<int, 4> order = {0, 1, 2, 3};
  for (uint64_t k = 4; k > 1; --k) std::swap(order[k - 1], order[key.Below(2 + k, k)]);
  for (const int change : order) {
    if (change == 0 && options.brightness > 0) AdjustBrightness(factor(0, options.brightness), out);
    if (change == 1 && options.contrast > 0) AdjustContrast(factor(1, options.contrast), out);
    if (change == 2 && options.saturation > 0) AdjustColor(factor(2, options.saturation), out);
    if (change == 3 && options.hue > 0) {
      AdjustHue(Between(key, 3, -options.hue, options.hue), out);
    }
  }
  return absl::OkStatus();
}

void NormalizeImage(const NormalizeImageOptions& options, const Image& in, float* values) {
  const auto channels = static_cast<size_t>(in.shape.channels);
  // A table a channel: a pixel has 256 values only, and each is rounded once.
  std::vector<std::array<float, 256>> tables(channels);
  for (size_t c = 0; c < channels; ++c) {
    const double mean = options.mean[options.mean.size() == 1 ? 0 : c];
    const double std = options.std[options.std.size() == 1 ? 0 : c];
    for (size_t v = 0; v < 256; ++v) {
      tables[c][v] = static_cast<float>((static_cast<double>(v) * options.scale - mean) / std);
    }
  }
  const uint8_t* p = in.pixels.data();
  for (const uint8_t* end = p + in.pixels.size(); p != end;) {
    for (size_t c = 0; c < channels; ++c) *values++ = tables[c][*p++];
  }
}

void RandomErasing(const RandomErasingOptions& options, const RandomKey& key,
                   const ImageShape& shape, float* values) {
  if (key.UniformDouble(0) >= options.epsilon) return;
  const auto side = [](double length) { return std::max<int64_t>(1, std::llround(length)); };
  Box box;
  for (int64_t k = 0; k < options.attempt; ++k) {
    const RandomKey draws = key.Mix(static_cast<uint64_t>(k));
    const double area =
        static_cast<double>(shape.height * shape.width) * Between(draws, 0, options.sl, options.sh);
    const double ratio =
        options.use_log_aspect
            ? std::exp(Between(draws, 1, std::log(options.r1), -std::log(options.r1)))
            : Between(draws, 1, options.r1, 1 / options.r1);
    box.height = side(std::sqrt(area * ratio));
    box.width = side(std::sqrt(area / ratio));
    if (box.height >= shape.height || box.width >= shape.width) continue;
    box.y =
        static_cast<int64_t>(draws.Below(2, static_cast<uint64_t>(shape.height - box.height + 1)));
    box.x =
        static_cast<int64_t>(draws.Below(3, static_cast<uint64_t>(shape.width - box.width + 1)));
    Erase(options, draws.Mix("values"), shape, box, values);
    return;
  }
}

}  // namespace capstan
