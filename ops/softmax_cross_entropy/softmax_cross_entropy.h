// Cross-entropy of softmax(logits) against class numbers or target probabilities, one loss for each
// sample.
//
//   losses = SoftmaxCrossEntropy(b, logits, labels, {.label_smoothing = 0.1});   // [n]
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct SoftmaxCrossEntropyAttrs {
  double label_smoothing = 0;
  int64_t ignore_index = -100;

  static constexpr auto Fields() {
    return std::array{Field<&SoftmaxCrossEntropyAttrs::label_smoothing>(
                          "label_smoothing", "share of the target that is spread over all classes",
                          Bounds{.min = 0, .max = 1}),
                      Field<&SoftmaxCrossEntropyAttrs::ignore_index>(
                          "ignore_index", "class number of samples with loss 0 and gradient 0")};
  }
};

extern const OpDef kSoftmaxCrossEntropy;
extern const OpDef kSoftmaxCrossEntropyGrad;

// logits [n,k]; labels: integers [n], or floats [n,k] (no gradient flows to them) -> losses [n].
// A class number outside 0..k-1 that is not ignore_index gives NaN.
ValueId SoftmaxCrossEntropy(Builder& b, ValueId logits, ValueId labels,
                            SoftmaxCrossEntropyAttrs attrs = {});

std::vector<const OpDef*> SoftmaxCrossEntropyRows();
std::vector<KernelRow> SoftmaxCrossEntropyReferenceKernels();
std::vector<KernelRow> SoftmaxCrossEntropyFastKernels();
std::vector<KernelRow> SoftmaxCrossEntropyCudaKernels();  // in builds with CUDA

}  // namespace capstan
