// Kernels over rows of channels: a linear layer's [n, c], an image in channels_last.
#include "ops/bias_add/bias_add.h"
#include "ops/bias_add/channel_rows.h"

namespace capstan {
namespace {

bool SupportsRows(const OpCall& call) {
  return IsInnermost(call.In(0), BiasAxis(call.attrs, call.In(0).ndim()));
}

bool SupportsBiasAdd(const OpCall& call) { return InOneOrder(call) && SupportsRows(call); }

void BiasAddKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct&) {
  const float *x = inputs[0].Data<float>(), *bias = inputs[1].Data<float>();
  float* y = outputs[0].Data<float>();
  const int64_t channels = inputs[1].type.count();
  if (channels == 0) return;
  const int64_t rows = outputs[0].type.count() / channels;
  ParallelFor(context, rows, RowGrain(channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x + row * channels;
      float* to = y + row * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) to[c] = from[c] + bias[c];
    }
  });
}

int64_t BiasAddGradWorkspace(const OpCall& call, const void*) {
  const int64_t channels = call.Out(0).count();
  return channels == 0 ? 0 : SumRowsBytes(1, call.In(0).count() / channels, channels);
}

void BiasAddGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  const float* dy = inputs[0].Data<float>();
  float* dbias = outputs[0].Data<float>();
  const int64_t channels = outputs[0].type.count();
  if (channels == 0) return;
  const auto add_row = [&](int64_t row, float* sums) {
    const float* from = dy + row * channels;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) sums[c] += from[c];
  };
  const double* totals =
      SumRows<1>(context, inputs[0].type.count() / channels, channels, context.workspace, add_row);
  for (int64_t c = 0; c < channels; ++c) dbias[c] = static_cast<float>(totals[c]);
}

}  // namespace

std::vector<KernelRow> BiasAddFastKernels() {
  return {{.op = "bias_add",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = SupportsBiasAdd,
           .fn = BiasAddKernel},
          {.op = "bias_add_grad",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = SupportsRows,
           .workspace_bytes = BiasAddGradWorkspace,
           .fn = BiasAddGradKernel}};
}

}  // namespace capstan
