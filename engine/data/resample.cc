#include "engine/data/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "engine/base/check.h"

namespace capstan {
namespace {

// For each output place along one axis: `count` neighbouring input places and their weights.
struct Taps {
  int64_t count = 0;
  std::vector<int64_t> first;
  std::vector<float> weights;  // [out, count]

  const float* WeightsOf(int64_t i) const { return weights.data() + i * count; }
};

double Cubic(double x, double a) {
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

double Sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

// A curve of weights over the distance to an output pixel, in input pixels.
struct Curve {
  double support;
  double (*weight)(double distance);
};

Curve CurveOf(const ResampleOptions& options) {
  switch (options.interpolation) {
    case Interpolation::kBicubic:
      return options.antialias ? Curve{2, +[](double x) { return Cubic(x, -0.5); }}
                               : Curve{2, +[](double x) { return Cubic(x, -0.75); }};
    case Interpolation::kLanczos:
      return options.antialias
                 ? Curve{3, +[](double x) { return x < 3 ? Sinc(x) * Sinc(x / 3) : 0; }}
                 : Curve{4, +[](double x) { return x < 4 ? Sinc(x) * Sinc(x / 4) : 0; }};
    default:
      return {1, +[](double x) { return std::max(0.0, 1 - x); }};
  }
}

Taps MakeTaps(int64_t in, int64_t out, const ResampleOptions& options) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const Curve curve = CurveOf(options);
  const double stretch = options.antialias ? std::max(1.0, scale) : 1.0;
  const bool nearest = options.interpolation == Interpolation::kNearest;
  const bool covered = options.interpolation == Interpolation::kArea && scale > 1;
  const int64_t window = nearest   ? 1
                         : covered ? static_cast<int64_t>(std::ceil(scale)) + 1
                                   : static_cast<int64_t>(std::ceil(2 * curve.support * stretch));
  Taps taps;
  taps.count = std::min(in, window);
  taps.first.resize(static_cast<size_t>(out));
  taps.weights.resize(static_cast<size_t>(out * taps.count));
  for (int64_t i = 0; i < out; ++i) {
    const double left = static_cast<double>(i) * scale, right = left + scale;
    const double centre = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double begin = nearest   ? std::floor(centre + 0.5)
                         : covered ? std::floor(left)
                                   : std::floor(centre - curve.support * stretch) + 1;
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(begin), 0, in - taps.count);
    taps.first[static_cast<size_t>(i)] = first;
    float* weights = taps.weights.data() + i * taps.count;
    double sum = 0;
    for (int64_t k = 0; k < window; ++k) {
      const int64_t place = static_cast<int64_t>(begin) + k;
      const int64_t inside = std::clamp<int64_t>(place, 0, in - 1);
      if (inside != place && (options.antialias || covered)) continue;
      const auto at = static_cast<double>(place);
      const double weight = nearest   ? 1
                            : covered ? std::max(0.0, std::min(right, at + 1) - std::max(left, at))
                                      : curve.weight(std::abs(at - centre) / stretch);
      weights[inside - first] += static_cast<float>(weight);
      sum += weight;
    }
    for (int64_t k = 0; k < taps.count; ++k) weights[k] /= static_cast<float>(sum);
  }
  return taps;
}

template <int kChannels>
void ScaleRow(const uint8_t* row, const Taps& taps, int64_t width, float* out) {
  for (int64_t x = 0; x < width; ++x, out += kChannels) {
    const uint8_t* p = row + taps.first[static_cast<size_t>(x)] * kChannels;
    const float* weights = taps.WeightsOf(x);
    float sum[kChannels] = {};
    for (int64_t k = 0; k < taps.count; ++k, p += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += weights[k] * p[c];
    }
    for (int c = 0; c < kChannels; ++c) out[c] = sum[c];
  }
}

void ScaleRow(const uint8_t* row, const Taps& taps, int64_t channels, int64_t width, float* out) {
  if (channels == 3) return ScaleRow<3>(row, taps, width, out);
  if (channels == 1) return ScaleRow<1>(row, taps, width, out);
  for (int64_t x = 0; x < width; ++x) {
    const uint8_t* p = row + taps.first[static_cast<size_t>(x)] * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (int64_t k = 0; k < taps.count; ++k) sum += taps.WeightsOf(x)[k] * p[k * channels + c];
      *out++ = sum;
    }
  }
}

}  // namespace

void Resample(const Image& in, const Box& region, int64_t height, int64_t width,
              const ResampleOptions& options, Image* out) {
  CHECK(region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
        region.x + region.width <= in.shape.width && region.y + region.height <= in.shape.height)
      << "region outside of a picture " << in.shape.ToString();
  const int64_t channels = in.shape.channels, row_size = width * channels;
  const Taps xs = MakeTaps(region.width, width, options);
  const Taps ys = MakeTaps(region.height, height, options);
  out->Reset({channels, height, width});
  // Input rows scaled along x; the taps of an output row are neighbours, so a ring holds them.
  std::vector<float> ring(static_cast<size_t>(ys.count * row_size));
  std::vector<int64_t> held(static_cast<size_t>(ys.count), -1);
  std::vector<float> sum(static_cast<size_t>(row_size));
  for (int64_t y = 0; y < height; ++y) {
    std::fill(sum.begin(), sum.end(), 0.5f);  // rounds to nearest when cut off below
    for (int64_t k = 0; k < ys.count; ++k) {
      const float weight = ys.WeightsOf(y)[k];
      if (weight == 0) continue;
      const int64_t source = ys.first[static_cast<size_t>(y)] + k, place = source % ys.count;
      float* scaled = ring.data() + place * row_size;
      if (held[static_cast<size_t>(place)] != source) {
        held[static_cast<size_t>(place)] = source;
        ScaleRow(in.Row(region.y + source) + region.x * channels, xs, channels, width, scaled);
      }
      for (int64_t i = 0; i < row_size; ++i) sum[static_cast<size_t>(i)] += weight * scaled[i];
    }
    uint8_t* row = out->Row(y);
    for (int64_t i = 0; i < row_size; ++i) {
      row[i] = static_cast<uint8_t>(std::clamp(sum[static_cast<size_t>(i)], 0.0f, 255.0f));
    }
  }
}

}  // namespace capstan
