// Reference kernels: plain loops in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernel/strided.h"
#include "ops/softmax_cross_entropy/labels.h"

namespace capstan {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What the softmax of a row should be.
template <typename T>
class Targets {
 public:
  Targets(const TensorView& labels, int64_t classes, const SoftmaxCrossEntropyAttrs& attrs)
      : labels_(labels), classes_(classes), attrs_(attrs) {}

  LabelKind Kind(int64_t sample) const {
    return Hard() ? ClassifyLabel(LabelAt(labels_, sample), classes_, attrs_) : LabelKind::kClass;
  }
  double At(int64_t sample, int64_t k) const {
    const double eps = attrs_.label_smoothing;
    const double target = Hard() ? (LabelAt(labels_, sample) == k ? 1.0 : 0.0)
                                 : double(Strided<const T>(labels_)(sample, k));
    return (1 - eps) * target + eps / static_cast<double>(classes_);
  }

 private:
  bool Hard() const { return IsInteger(labels_.type.dtype); }

  const TensorView& labels_;
  int64_t classes_;
  const SoftmaxCrossEntropyAttrs& attrs_;
};

// log of the softmax: logit - greatest - log_sum.
struct Normalizer {
  double greatest = 0, log_sum = 0;
};
template <typename T>
Normalizer NormalizerOf(const Strided<const T>& logits, int64_t sample, int64_t classes) {
  double greatest = logits(sample, 0), sum = 0;
  for (int64_t k = 1; k < classes; ++k) greatest = std::max(greatest, double(logits(sample, k)));
  for (int64_t k = 0; k < classes; ++k) sum += std::exp(double(logits(sample, k)) - greatest);
  return {greatest, std::log(sum)};
}

template <typename T>
double Loss(const Strided<const T>& logits, const Targets<T>& targets, int64_t sample,
            int64_t classes) {
  const Normalizer n = NormalizerOf(logits, sample, classes);
  double loss = 0;
  for (int64_t k = 0; k < classes; ++k) {
    const double q = targets.At(sample, k);
    // A class of no weight counts for nothing, though its logit be minus infinity.
    if (q != 0) loss += q * (n.greatest - double(logits(sample, k)) + n.log_sum);
  }
  return loss;
}

void LossKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct& any) {
  const int64_t samples = inputs[0].type.shape[0], classes = inputs[0].type.shape[1];
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> logits(inputs[0]);
    const Strided<T> loss(outputs[0]);
    const Targets<T> targets(inputs[1], classes, any.As<SoftmaxCrossEntropyAttrs>());
    for (int64_t i = 0; i < samples; ++i) {
      const LabelKind kind = targets.Kind(i);
      const double value = kind == LabelKind::kIgnored   ? 0.0
                           : kind == LabelKind::kInvalid ? kNaN
                                                         : Loss(logits, targets, i, classes);
      loss(i) = static_cast<T>(value);
    }
  });
}

template <typename T>
void GradRow(double dloss, const Strided<const T>& logits, const Targets<T>& targets,
             int64_t sample, int64_t classes, const Strided<T>& dlogits) {
  const Normalizer n = NormalizerOf(logits, sample, classes);
  double total = 0;
  for (int64_t k = 0; k < classes; ++k) total += targets.At(sample, k);
  for (int64_t k = 0; k < classes; ++k) {
    const double p = std::exp(double(logits(sample, k)) - n.greatest - n.log_sum);
    dlogits(sample, k) = static_cast<T>(dloss * (total * p - targets.At(sample, k)));
  }
}

void GradKernel(KernelContext&, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct& any) {
  const int64_t samples = inputs[1].type.shape[0], classes = inputs[1].type.shape[1];
  ForFloat(inputs[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> dloss(inputs[0]), logits(inputs[1]);
    const Strided<T> dlogits(outputs[0]);
    const Targets<T> targets(inputs[2], classes, any.As<SoftmaxCrossEntropyAttrs>());
    for (int64_t i = 0; i < samples; ++i) {
      const LabelKind kind = targets.Kind(i);
      if (kind == LabelKind::kClass) {
        GradRow(double(dloss(i)), logits, targets, i, classes, dlogits);
        continue;
      }
      const T value = kind == LabelKind::kIgnored ? zero : static_cast<T>(kNaN);
      for (int64_t k = 0; k < classes; ++k) dlogits(i, k) = value;
    }
  });
}

}  // namespace

std::vector<KernelRow> SoftmaxCrossEntropyReferenceKernels() {
  return {{.op = "softmax_cross_entropy", .fn = LossKernel},
          {.op = "softmax_cross_entropy_grad", .fn = GradKernel}};
}

}  // namespace capstan
