#include "engine/train/evaluate.h"

#include <algorithm>
#include <cstring>

#include "engine/base/status.h"
#include "engine/train/metrics.h"

namespace capstan {
namespace {

// Brings batches to planned sizes.
class BatchFitter {
 public:
  BatchFitter(std::vector<int64_t> sizes, int64_t ignore_index)
      : sizes_(std::move(sizes)), ignore_index_(ignore_index) {}

  // The batch itself where its size is planned; else a copy filled up with ignored samples.
  MicroBatch Fit(const Batch& batch) {
    const TensorView &image = batch.Get("image"), &label = batch.Get("label");
    const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), batch.size);
    CHECK(size != sizes_.end()) << "a batch of " << batch.size << " samples, larger than planned";
    if (*size == batch.size) return {image, label};
    TensorType image_type = image.type, label_type = label.type;
    image_type.shape[0] = label_type.shape[0] = *size;
    if (image_.type() != image_type) image_ = HostTensor(image_type);
    if (label_.type() != label_type) label_ = HostTensor(label_type);
    std::memcpy(image_.data(), image.data, static_cast<size_t>(image.type.bytes()));
    const auto labels = label_.Elements<int64_t>();
    std::fill(labels.begin(), labels.end(), ignore_index_);
    std::copy_n(label.Data<int64_t>(), batch.size, labels.begin());
    return {image_.view(), label_.view()};
  }

 private:
  const std::vector<int64_t> sizes_;
  const int64_t ignore_index_;
  HostTensor image_, label_;
};

}  // namespace

absl::StatusOr<double> EvaluationResult::Metric(const std::string& name) const {
  std::string known;
  for (const auto& [metric, value] : metrics) {
    if (metric == name) return value;
    known += " " + metric;
  }
  return NotFound("no metric '{}'; there are:{}", name, known);
}

absl::StatusOr<EvaluationResult> EvaluateAll(Session& session, Loader& loader, int64_t ignore_index,
                                             const std::atomic<bool>* stop) {
  EvaluationResult result;
  BatchFitter fitter(session.EvaluateSizes(), ignore_index);
  ClassificationMetrics metrics(ignore_index);
  while (true) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
      return absl::CancelledError("stopped while evaluating");
    }
    ASSIGN_OR_RETURN(const BatchPtr batch, loader.Next());
    if (batch == nullptr) break;
    result.bad.insert(result.bad.end(), batch->bad.begin(), batch->bad.end());
    result.samples += batch->size;
    const MicroBatch fitted = fitter.Fit(*batch);
    ASSIGN_OR_RETURN(const EvaluateResult out, session.RunEvaluate(fitted));
    metrics.Add(out.logits, fitted.label, out.loss_sum);
  }
  result.bad.insert(result.bad.end(), loader.bad_at_end().begin(), loader.bad_at_end().end());
  result.metrics = metrics.Values();
  return result;
}

}  // namespace capstan
