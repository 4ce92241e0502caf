// Fast kernels for class numbers: samples on all threads, exponentials in f32, sums in f64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/softmax_cross_entropy/labels.h"

namespace capstan {
namespace {

constexpr int64_t kGrain = 4096;  // logits
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <int kLabels>
bool HardLabels(const OpCall& call) {
  return IsInteger(call.In(kLabels).dtype);
}

float Loss(const float* logits, int64_t classes, int64_t label, double smoothing) {
  const float greatest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += double(std::exp(logits[k] - greatest));
  const double log_sum = std::log(sum);
  double loss = double(greatest) - double(logits[label]) + log_sum;
  if (smoothing != 0) {
    double below = 0;
    for (int64_t k = 0; k < classes; ++k) below += double(greatest) - double(logits[k]);
    loss = (1 - smoothing) * loss + smoothing * (below / double(classes) + log_sum);
  }
  return static_cast<float>(loss);
}

void GradRow(float dloss, const float* logits, int64_t classes, int64_t label, double smoothing,
             float* dlogits) {
  const float greatest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) {
    dlogits[k] = std::exp(logits[k] - greatest);
    sum += double(dlogits[k]);
  }
  const auto factor = static_cast<float>(1.0 / sum);
  const auto spread = static_cast<float>(smoothing / double(classes));
  const float at_label = dlogits[label] * factor - static_cast<float>(1 - smoothing) - spread;
  for (int64_t k = 0; k < classes; ++k) dlogits[k] = dloss * (dlogits[k] * factor - spread);
  dlogits[label] = dloss * at_label;
}

void LossKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<SoftmaxCrossEntropyAttrs>();
  const int64_t samples = inputs[0].type.shape[0], classes = inputs[0].type.shape[1];
  const float* logits = inputs[0].Data<float>();
  float* loss = outputs[0].Data<float>();
  ParallelFor(context, samples, kGrain / classes + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t label = LabelAt(inputs[1], i);
      const LabelKind kind = ClassifyLabel(label, classes, attrs);
      loss[i] = kind == LabelKind::kIgnored ? 0.0f
                : kind == LabelKind::kInvalid
                    ? kNaN
                    : Loss(logits + i * classes, classes, label, attrs.label_smoothing);
    }
  });
}

void GradKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<SoftmaxCrossEntropyAttrs>();
  const int64_t samples = inputs[1].type.shape[0], classes = inputs[1].type.shape[1];
  const float *dloss = inputs[0].Data<float>(), *logits = inputs[1].Data<float>();
  float* dlogits = outputs[0].Data<float>();
  ParallelFor(context, samples, kGrain / classes + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t label = LabelAt(inputs[2], i), at = i * classes;
      const LabelKind kind = ClassifyLabel(label, classes, attrs);
      if (kind == LabelKind::kClass) {
        GradRow(dloss[i], logits + at, classes, label, attrs.label_smoothing, dlogits + at);
      } else {
        std::fill_n(dlogits + at, classes, kind == LabelKind::kIgnored ? 0.0f : kNaN);
      }
    }
  });
}

}  // namespace

std::vector<KernelRow> SoftmaxCrossEntropyFastKernels() {
  return {{.op = "softmax_cross_entropy",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = HardLabels<1>,
           .fn = LossKernel},
          {.op = "softmax_cross_entropy_grad",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = HardLabels<2>,
           .fn = GradKernel}};
}

}  // namespace capstan
