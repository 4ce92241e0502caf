// f32 kernels over channels_last images, eight channels at once. Saved: a byte for each output in
// memory order: the winner's place in its window, row by row. (oneDNN's are faster but lose NaN and
// minus infinity.)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/kernel/flat.h"
#include "ops/max_pool/max_pool.h"

namespace capstan {
namespace {

constexpr int64_t kLanes = 8;
using Floats = float __attribute__((vector_size(32)));
using Ints = int32_t __attribute__((vector_size(32)));
using Bytes = uint8_t __attribute__((vector_size(8)));

template <typename V>
V Load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <typename V>
void Store(V v, void* to) {
  std::memcpy(to, &v, sizeof(V));
}

// A place must fit into a byte.
constexpr int64_t kMostPixels = 256;

struct Pixel {
  int32_t place;   // in the window, row by row
  int64_t offset;  // of its first channel in the image
};

// The pixels of the windows of one image.
class Windows {
 public:
  Windows(const PoolAttrs& attrs, const Shape& in)
      : channels_(in[1]), height_(in[2]), width_(in[3]) {
    const absl::StatusOr<Window> window = PoolWindow(attrs);
    CHECK_OK(window);
    window_ = *window;
  }

  // Those of the window at (p,q) that lie in the image; valid until the next call.
  std::span<const Pixel> At(int64_t p, int64_t q) {
    const PixelRange rows = window_.Inside(0, p, height_), columns = window_.Inside(1, q, width_);
    size_t count = 0;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      const int64_t row = (h - window_.Begin(0, p)) * window_.kernel[1] - window_.Begin(1, q);
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        pixels_[count++] = {static_cast<int32_t>(row + w), (h * width_ + w) * channels_};
      }
    }
    return {pixels_.data(), count};
  }

 private:
  Window window_;
  int64_t channels_, height_, width_;
  std::array<Pixel, kMostPixels> pixels_;
};

// kRegisters times eight channels of one output: several chains of comparisons at once. Not (value
// <= best) also lets NaN win; a NaN that leads stays.
template <int kRegisters>
void PoolLanes(std::span<const Pixel> pixels, const float* image, float* y, uint8_t* saved) {
  Floats best[kRegisters];
  Ints winner[kRegisters];
#pragma GCC unroll 4
  for (int r = 0; r < kRegisters; ++r) {
    best[r] = Load<Floats>(image + pixels[0].offset + r * kLanes);
    winner[r] = Ints{} + pixels[0].place;
  }
  for (const Pixel& pixel : pixels.subspan(1)) {
    const Ints place = Ints{} + pixel.place;
#pragma GCC unroll 4
    for (int r = 0; r < kRegisters; ++r) {
      const auto value = Load<Floats>(image + pixel.offset + r * kLanes);
      const Ints wins = ~(value <= best[r]) & (best[r] == best[r]);
      best[r] = wins ? value : best[r];
      winner[r] = wins ? place : winner[r];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRegisters; ++r) {
    Store(best[r], y + r * kLanes);
    Store(__builtin_convertvector(winner[r], Bytes), saved + r * kLanes);
  }
}

void PoolOne(std::span<const Pixel> pixels, const float* image, float* y, uint8_t* saved) {
  Pixel winner = pixels[0];
  for (const Pixel& pixel : pixels.subspan(1)) {
    const float value = image[pixel.offset], best = image[winner.offset];
    if (!(value <= best) && !std::isnan(best)) winner = pixel;
  }
  *y = image[winner.offset];
  *saved = static_cast<uint8_t>(winner.place);
}

void MaxPoolKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape &in = inputs[0].type.shape, &out = outputs[0].type.shape;
  const int64_t channels = in[1], image_size = channels * in[2] * in[3];
  const int64_t height = out[2], width = out[3];
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  auto* saved = static_cast<uint8_t*>(outputs[1].data);
  const auto pool_pixel = [&](std::span<const Pixel> pixels, const float* image, int64_t at) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= channels; c += 4 * kLanes) {
      PoolLanes<4>(pixels, image + c, y + at + c, saved + at + c);
    }
    for (; c + kLanes <= channels; c += kLanes) {
      PoolLanes<1>(pixels, image + c, y + at + c, saved + at + c);
    }
    for (; c < channels; ++c) PoolOne(pixels, image + c, y + at + c, saved + at + c);
  };
  const int64_t grain = std::max<int64_t>(kFlatGrain / (width * channels), 1);
  ParallelFor(context, out[0] * height, grain, [&](int64_t begin, int64_t end) {
    Windows windows(attrs.As<PoolAttrs>(), in);
    for (int64_t row = begin; row < end; ++row) {
      const float* image = x + row / height * image_size;
      for (int64_t q = 0; q < width; ++q) {
        pool_pixel(windows.At(row % height, q), image, (row * width + q) * channels);
      }
    }
  });
}

// Adds to every pixel of the window, zero where it did not win: no branches.
void SpreadLanes(std::span<const Pixel> pixels, const float* dy, const uint8_t* saved,
                 float* image) {
  const Ints winner = __builtin_convertvector(Load<Bytes>(saved), Ints);
  const auto grad = Load<Floats>(dy);
  for (const Pixel& pixel : pixels) {
    const Floats share = winner == Ints{} + pixel.place ? grad : Floats{};
    Store(Load<Floats>(image + pixel.offset) + share, image + pixel.offset);
  }
}

void SpreadOne(std::span<const Pixel> pixels, float dy, uint8_t saved, float* image) {
  for (const Pixel& pixel : pixels) {
    if (saved == pixel.place) image[pixel.offset] += dy;
  }
}

// Windows overlap within an image only, so images are independent.
void MaxPoolGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape &in = outputs[0].type.shape, &out = inputs[0].type.shape;
  const int64_t channels = in[1], image_size = channels * in[2] * in[3];
  const int64_t height = out[2], width = out[3];
  const float* dy = inputs[0].Data<float>();
  const auto* saved = static_cast<const uint8_t*>(inputs[1].data);
  float* dx = outputs[0].Data<float>();
  const auto spread_pixel = [&](std::span<const Pixel> pixels, float* image, int64_t at) {
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) {
      SpreadLanes(pixels, dy + at + c, saved + at + c, image + c);
    }
    for (; c < channels; ++c) SpreadOne(pixels, dy[at + c], saved[at + c], image + c);
  };
  ParallelFor(context, in[0], 1, [&](int64_t begin, int64_t end) {
    Windows windows(attrs.As<MaxPoolGradAttrs>(), in);
    for (int64_t n = begin; n < end; ++n) {
      float* image = dx + n * image_size;
      std::fill_n(image, image_size, 0.f);
      for (int64_t p = 0; p < height; ++p) {
        for (int64_t q = 0; q < width; ++q) {
          spread_pixel(windows.At(p, q), image, ((n * height + p) * width + q) * channels);
        }
      }
    }
  });
}

bool IsSmall(const PoolAttrs& attrs) { return attrs.kernel[0] * attrs.kernel[1] <= kMostPixels; }

int64_t SavedBytes(const OpCall& call, const void*, int) { return call.Out(0).count(); }

}  // namespace

std::vector<KernelRow> MaxPoolFastKernels() {
  const KernelRow row{.impl = "fast", .priority = 10, .dtypes = {DType::kF32}};
  KernelRow forward = row, backward = row;
  forward.op = "max_pool";
  forward.supports = [](const OpCall& call) {
    return ImagesAreChannelsLast(call) && IsSmall(call.Attrs<PoolAttrs>());
  };
  forward.saved_bytes = SavedBytes;
  forward.fn = MaxPoolKernel;
  backward.op = "max_pool_grad";
  backward.supports = [](const OpCall& call) {
    return ImagesAreChannelsLast(call) && IsSmall(call.Attrs<MaxPoolGradAttrs>());
  };
  backward.fn = MaxPoolGradKernel;
  return {forward, backward};
}

}  // namespace capstan
