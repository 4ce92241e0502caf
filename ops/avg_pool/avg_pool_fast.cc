// f32 kernels over channels_last images: all channels of a pixel at once.
#include <algorithm>

#include "engine/kernel/flat.h"
#include "ops/avg_pool/avg_pool.h"

namespace capstan {
namespace {

void AvgPoolKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape &in = inputs[0].type.shape, &out = outputs[0].type.shape;
  const int64_t channels = in[1], height = in[2], width = in[3];
  const AvgWindows windows(attrs.As<AvgPoolAttrs>(), height, width);
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  const auto pool_pixel = [&](int64_t n, int64_t p, int64_t q) {
    float* sum = y + ((n * out[2] + p) * out[3] + q) * channels;
    std::fill_n(sum, channels, 0.f);
    const PixelRange rows = windows.Inside(0, p), columns = windows.Inside(1, q);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const float* pixel = x + ((n * height + h) * width + w) * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) sum[c] += pixel[c];
      }
    }
    const auto divisor = static_cast<float>(windows.Divisor(p, q));
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) sum[c] /= divisor;
  };
  const int64_t grain = std::max<int64_t>(kFlatGrain / std::max<int64_t>(out[3] * channels, 1), 1);
  ParallelFor(context, out[0] * out[2], grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t q = 0; q < out[3]; ++q) pool_pixel(row / out[2], row % out[2], q);
    }
  });
}

// Windows overlap within an image only, so images are independent.
void AvgPoolGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const Shape &in = outputs[0].type.shape, &out = inputs[0].type.shape;
  const int64_t channels = in[1], height = in[2], width = in[3];
  const AvgWindows windows(attrs.As<AvgPoolGradAttrs>(), height, width);
  const float* dy = inputs[0].Data<float>();
  float* dx = outputs[0].Data<float>();
  const auto spread_pixel = [&](int64_t n, int64_t p, int64_t q) {
    const float* from = dy + ((n * out[2] + p) * out[3] + q) * channels;
    const float scale = 1.f / static_cast<float>(windows.Divisor(p, q));
    const PixelRange rows = windows.Inside(0, p), columns = windows.Inside(1, q);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        float* pixel = dx + ((n * height + h) * width + w) * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) pixel[c] += from[c] * scale;
      }
    }
  };
  ParallelFor(context, in[0], 1, [&](int64_t begin, int64_t end) {
    const int64_t image = channels * height * width;
    for (int64_t n = begin; n < end; ++n) {
      std::fill_n(dx + n * image, image, 0.f);
      for (int64_t p = 0; p < out[2]; ++p) {
        for (int64_t q = 0; q < out[3]; ++q) spread_pixel(n, p, q);
      }
    }
  });
}

}  // namespace

std::vector<KernelRow> AvgPoolFastKernels() {
  const KernelRow fast = {
      .impl = "fast", .priority = 10, .dtypes = {DType::kF32}, .supports = ImagesAreChannelsLast};
  KernelRow forward = fast, backward = fast;
  forward.op = "avg_pool";
  forward.fn = AvgPoolKernel;
  backward.op = "avg_pool_grad";
  backward.fn = AvgPoolGradKernel;
  return {forward, backward};
}

}  // namespace capstan
