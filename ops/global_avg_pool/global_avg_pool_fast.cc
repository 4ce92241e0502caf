// f32 kernels over channels_last images: a row of channels at a time.
#include <algorithm>

#include "engine/kernel/flat.h"
#include "ops/global_avg_pool/global_avg_pool.h"

namespace capstan {
namespace {

void PoolKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  const Shape& in = inputs[0].type.shape;
  const int64_t channels = in[1], pixels = in[2] * in[3];
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  const float scale = 1.f / static_cast<float>(pixels);
  ParallelFor(context, in[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      float* sum = y + n * channels;
      std::fill_n(sum, channels, 0.f);
      for (int64_t i = 0; i < pixels; ++i) {
        const float* pixel = x + (n * pixels + i) * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) sum[c] += pixel[c];
      }
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) sum[c] *= scale;
    }
  });
}

void GradKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  const Shape& out = outputs[0].type.shape;
  const int64_t channels = out[1], pixels = out[2] * out[3];
  const float* dy = inputs[0].Data<float>();
  float* dx = outputs[0].Data<float>();
  const float scale = 1.f / static_cast<float>(pixels);
  ParallelFor(context, out[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* from = dy + n * channels;
      for (int64_t i = 0; i < pixels; ++i) {
        float* to = dx + (n * pixels + i) * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) to[c] = from[c] * scale;
      }
    }
  });
}

}  // namespace

std::vector<KernelRow> GlobalAvgPoolFastKernels() {
  const KernelRow row{
      .impl = "fast", .priority = 10, .dtypes = {DType::kF32}, .supports = ImagesAreChannelsLast};
  KernelRow forward = row, backward = row;
  forward.op = "global_avg_pool";
  forward.fn = PoolKernel;
  backward.op = "global_avg_pool_grad";
  backward.fn = GradKernel;
  return {forward, backward};
}

}  // namespace capstan
