#include "engine/data/pixel_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/base/check.h"

namespace capstan {
namespace {

using Table = std::array<uint8_t, 256>;

uint8_t ToPixel(double value) { return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0) + 0.5); }

template <typename Function>
Table MakeTable(Function value) {
  Table table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = ToPixel(value(i));
  return table;
}

void Apply(const Table& table, Image* image) {
  for (uint8_t& p : image->pixels) p = table[p];
}

// ITU-R BT.601 luma.
float Grey(const uint8_t* rgb) { return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]; }

double MeanGrey(const Image& image) {
  const auto& p = image.pixels;
  double sum = 0;
  if (image.shape.channels == 3) {
    for (size_t i = 0; i < p.size(); i += 3) sum += double(Grey(&p[i]));
    return 3 * sum / static_cast<double>(p.size());
  }
  return std::accumulate(p.begin(), p.end(), 0.0) / static_cast<double>(p.size());
}

// Calls `make` with the histogram of each channel; applies the tables that it gives.
template <typename Make>
void ApplyByHistogram(Image* image, Make make) {
  const auto channels = static_cast<size_t>(image->shape.channels);
  for (size_t c = 0; c < channels; ++c) {
    std::array<int64_t, 256> histogram{};
    for (size_t i = c; i < image->pixels.size(); i += channels) ++histogram[image->pixels[i]];
    const Table table = make(histogram);
    for (size_t i = c; i < image->pixels.size(); i += channels) {
      image->pixels[i] = table[image->pixels[i]];
    }
  }
}

Table Unchanged() {
  return MakeTable([](int i) { return i; });
}

}  // namespace

void AdjustBrightness(double factor, Image* image) {
  Apply(MakeTable([=](int i) { return factor * i; }), image);
}

void AdjustContrast(double factor, Image* image) {
  const double mean = std::floor(MeanGrey(*image) + 0.5);
  Apply(MakeTable([=](int i) { return mean + factor * (i - mean); }), image);
}

void AdjustColor(double factor, Image* image) {
  CHECK_EQ(image->shape.channels, 3);
  const auto f = static_cast<float>(factor);
  for (size_t i = 0; i < image->pixels.size(); i += 3) {
    uint8_t* p = &image->pixels[i];
    const float grey = Grey(p);
    for (size_t c = 0; c < 3; ++c) {
      const float value = grey + f * (static_cast<float>(p[c]) - grey);
      p[c] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
    }
  }
}

void AdjustSharpness(double factor, Image* image) {
  const int64_t width = image->shape.width, height = image->shape.height;
  const int64_t channels = image->shape.channels;
  const auto f = static_cast<float>(factor);
  // A pixel is read by the rows above and below it: two rows of the original are kept.
  std::vector<uint8_t> above(image->pixels.begin(), image->pixels.begin() + image->stride());
  std::vector<uint8_t> here(above.size());
  // Pixels at the border have no neighbours to be blurred with and stay.
  for (int64_t y = 1; y + 1 < height; ++y) {
    uint8_t* row = image->Row(y);
    std::copy_n(row, image->stride(), here.begin());
    const uint8_t *up = above.data(), *mid = here.data(), *down = image->Row(y + 1);
    for (int64_t i = channels; i + channels < width * channels; ++i) {
      const int64_t l = i - channels, r = i + channels;
      const int sum =
          up[l] + up[i] + up[r] + mid[l] + 5 * mid[i] + mid[r] + down[l] + down[i] + down[r];
      const float blurred = static_cast<float>(sum) / 13;
      const float value = blurred + f * (static_cast<float>(mid[i]) - blurred);
      row[i] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
    }
    std::swap(above, here);
  }
}

void AdjustHue(double turn, Image* image) {
  CHECK_EQ(image->shape.channels, 3);
  const auto shift = static_cast<float>(6 * turn);
  for (size_t i = 0; i < image->pixels.size(); i += 3) {
    uint8_t* p = &image->pixels[i];
    const auto r = static_cast<float>(p[0]), g = static_cast<float>(p[1]),
               b = static_cast<float>(p[2]);
    const float most = std::max({r, g, b}), chroma = most - std::min({r, g, b});
    if (chroma == 0) continue;  // grey has no hue
    // Sixths of the circle: red 0, green 2, blue 4.
    float hue = most == r   ? (g - b) / chroma
                : most == g ? 2 + (b - r) / chroma
                            : 4 + (r - g) / chroma;
    hue += shift;
    for (int c = 0; c < 3; ++c) {
      // Each channel is a trapezium over the circle, a third apart.
      const float k = std::fmod(hue + (c == 0 ? 5.0f : c == 1 ? 3.0f : 1.0f) + 12, 6.0f);
      const float share = std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
      p[c] = static_cast<uint8_t>(most - chroma * share + 0.5f);
    }
  }
}

void Posterize(int64_t bits, Image* image) {
  const auto mask = static_cast<uint8_t>(0xFF << (8 - bits));
  for (uint8_t& p : image->pixels) p &= mask;
}

void Solarize(double threshold, Image* image) {
  Apply(MakeTable([=](int i) { return i < threshold ? i : 255 - i; }), image);
}

void AutoContrast(Image* image) {
  ApplyByHistogram(image, [](const std::array<int64_t, 256>& histogram) {
    int low = 0, high = 255;
    while (low < 255 && histogram[static_cast<size_t>(low)] == 0) ++low;
    while (high > low && histogram[static_cast<size_t>(high)] == 0) --high;
    if (high == low) return Unchanged();
    return MakeTable([=](int i) { return std::floor(255.0 * (i - low) / (high - low)); });
  });
}

void Equalize(Image* image) {
  ApplyByHistogram(image, [](const std::array<int64_t, 256>& histogram) {
    int64_t sum = 0, last = 0;
    for (const int64_t n : histogram) {
      sum += n;
      if (n > 0) last = n;
    }
    const int64_t step = (sum - last) / 255;
    if (step == 0) return Unchanged();
    Table table;
    int64_t below = step / 2;
    for (size_t i = 0; i < 256; ++i) {
      table[i] = static_cast<uint8_t>(std::min<int64_t>(255, below / step));
      below += histogram[i];
    }
    return table;
  });
}

void Invert(Image* image) {
  for (uint8_t& p : image->pixels) p = static_cast<uint8_t>(255 - p);
}

}  // namespace capstan
