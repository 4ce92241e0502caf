#include "engine/data/resample.h"

#include <algorithm>
#include <cmath>
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

Taps MakeTaps(int64_t in, int64_t out, bool antialias) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = antialias ? std::max(1.0, scale) : 1.0;
  Taps taps;
  taps.count = std::min(in, static_cast<int64_t>(std::ceil(2 * support)));
  taps.first.resize(static_cast<size_t>(out));
  taps.weights.resize(static_cast<size_t>(out * taps.count));
  for (int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const auto nearest = static_cast<int64_t>(std::floor(centre - support)) + 1;
    const int64_t first = std::clamp<int64_t>(nearest, 0, in - taps.count);
    taps.first[static_cast<size_t>(i)] = first;
    float* weights = taps.weights.data() + i * taps.count;
    double sum = 0;
    for (int64_t k = 0; k < taps.count; ++k) {
      const double distance = std::abs(static_cast<double>(first + k) - centre) / support;
      weights[k] = static_cast<float>(std::max(0.0, 1 - distance));
      sum += weights[k];
    }
    // Less than 1 at the edges, where the outer neighbour is missing.
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

void Resample(const Image& in, const Box& region, int64_t height, int64_t width, bool antialias,
              Image* out) {
  CHECK(region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
        region.x + region.width <= in.shape.width && region.y + region.height <= in.shape.height)
      << "region outside of a picture " << in.shape.ToString();
  const int64_t channels = in.shape.channels, row_size = width * channels;
  const Taps xs = MakeTaps(region.width, width, antialias);
  const Taps ys = MakeTaps(region.height, height, antialias);
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
      row[i] = static_cast<uint8_t>(std::min(sum[static_cast<size_t>(i)], 255.0f));
    }
  }
}

}  // namespace capstan
