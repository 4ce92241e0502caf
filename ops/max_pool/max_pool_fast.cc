// f32 kernels over channels_last images: all channels of a pixel at once. Saved: an int32 for each
// output in memory order: the winner's h * width + w.
#include <algorithm>
#include <cmath>

#include "engine/kernel/flat.h"
#include "ops/max_pool/max_pool.h"

namespace capstan {
namespace {

void MaxPoolKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const absl::StatusOr<Window> window = PoolWindow(attrs.As<PoolAttrs>());
  CHECK_OK(window);
  const Shape &in = inputs[0].type.shape, &out = outputs[0].type.shape;
  const int64_t channels = in[1], height = in[2], width = in[3];
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  auto* saved = static_cast<int32_t*>(outputs[1].data);
  const auto pool_pixel = [&](int64_t n, int64_t p, int64_t q) {
    const int64_t at = ((n * out[2] + p) * out[3] + q) * channels;
    float* best = y + at;
    int32_t* winner = saved + at;
    bool first = true;
    for (int64_t u = 0; u < window->kernel[0]; ++u) {
      const int64_t h = window->Begin(0, p) + u;
      if (h < 0 || h >= height) continue;
      for (int64_t v = 0; v < window->kernel[1]; ++v) {
        const int64_t w = window->Begin(1, q) + v;
        if (w < 0 || w >= width) continue;
        const float* pixel = x + ((n * height + h) * width + w) * channels;
        const auto place = static_cast<int32_t>(h * width + w);
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          // Not (pixel <= best) also lets NaN win; a NaN that leads stays.
          const bool wins = first || (!(pixel[c] <= best[c]) && best[c] == best[c]);
          best[c] = wins ? pixel[c] : best[c];
          winner[c] = wins ? place : winner[c];
        }
        first = false;
      }
    }
  };
  ParallelFor(context, out[0] * out[2], 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t q = 0; q < out[3]; ++q) pool_pixel(row / out[2], row % out[2], q);
    }
  });
}

void MaxPoolGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  const Shape &in = outputs[0].type.shape, &out = inputs[0].type.shape;
  const int64_t channels = in[1], plane = in[2] * in[3], pixels = out[2] * out[3];
  const float* dy = inputs[0].Data<float>();
  const auto* saved = static_cast<const int32_t*>(inputs[1].data);
  float* dx = outputs[0].Data<float>();
  // Windows overlap within an image only, so images are independent.
  ParallelFor(context, in[0], 1, [&](int64_t begin, int64_t end) {
    std::fill(dx + begin * plane * channels, dx + end * plane * channels, 0.f);
    for (int64_t n = begin; n < end; ++n) {
      float* image = dx + n * plane * channels;
      for (int64_t i = n * pixels; i < (n + 1) * pixels; ++i) {
        for (int64_t c = 0; c < channels; ++c) {
          image[saved[i * channels + c] * channels + c] += dy[i * channels + c];
        }
      }
    }
  });
}

}  // namespace

std::vector<KernelRow> MaxPoolFastKernels() {
  const KernelRow row{
      .impl = "fast", .priority = 10, .dtypes = {DType::kF32}, .supports = ImagesAreChannelsLast};
  KernelRow forward = row, backward = row;
  forward.op = "max_pool";
  forward.fn = MaxPoolKernel;
  backward.op = "max_pool_grad";
  backward.fn = MaxPoolGradKernel;
  return {forward, backward};
}

}  // namespace capstan
