// Metrics of classification, gathered over the batches of an evaluation.
//
//   ClassificationMetrics m(-100);
//   m.Add(logits, labels, loss_sum);
//   m.Values();       // {"top1", 0.9}, {"top5", 1.0}, {"loss", 0.3}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor/tensor_view.h"

namespace capstan {

class ClassificationMetrics {
 public:
  // Labels equal to `ignore_index` do not count.
  explicit ClassificationMetrics(int64_t ignore_index) : ignore_index_(ignore_index) {}

  // logits f32 or f64 [n, k], labels i64 [n], both in host memory; `loss_sum` over the labels that
  // count. Equal scores rank by class id, lower first; a sample with a NaN score counts as wrong.
  void Add(const TensorView& logits, const TensorView& labels, double loss_sum);

  // Means over the samples that count; all 0 when there is none. top5 is top-k for fewer classes.
  std::vector<std::pair<std::string, double>> Values() const;
  int64_t count() const { return count_; }

 private:
  template <typename T>
  void AddRows(const TensorView& logits, const int64_t* labels);

  const int64_t ignore_index_;
  int64_t count_ = 0;
  int64_t top1_ = 0;
  int64_t top5_ = 0;
  double loss_ = 0;
};

// What a job may name as `eval.metric`.
std::span<const char* const> MetricNames();

// Whether a larger value of this metric is better: true but for "loss".
bool HigherIsBetter(const std::string& metric);

// What to tell about the metrics of a model with so many classes; empty where there is nothing.
std::string NoteOnMetrics(int64_t classes);

}  // namespace capstan
