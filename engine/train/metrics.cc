#include "engine/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace capstan {
namespace {

constexpr int64_t kTopClasses = 5;

// How many classes come before the label; `classes` where a score is NaN.
template <typename T>
int64_t RankOf(const T* scores, int64_t classes, int64_t label) {
  if (label < 0 || label >= classes) return classes;
  int64_t rank = 0;
  for (int64_t k = 0; k < classes; ++k) {
    if (std::isnan(scores[k])) return classes;
    if (scores[k] > scores[label] || (scores[k] == scores[label] && k < label)) ++rank;
  }
  return rank;
}

}  // namespace

template <typename T>
void ClassificationMetrics::AddRows(const TensorView& logits, const int64_t* labels) {
  const int64_t n = logits.type.shape[0], classes = logits.type.shape[1];
  const T* scores = logits.Data<T>();
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] == ignore_index_) continue;
    const int64_t rank = RankOf(scores + i * classes, classes, labels[i]);
    ++count_;
    top1_ += rank < 1 ? 1 : 0;
    top5_ += rank < std::min(kTopClasses, classes) ? 1 : 0;
  }
}

void ClassificationMetrics::Add(const TensorView& logits, const TensorView& labels,
                                double loss_sum) {
  loss_ += loss_sum;
  if (logits.type.dtype == DType::kF64) {
    AddRows<double>(logits, labels.Data<int64_t>());
  } else {
    AddRows<float>(logits, labels.Data<int64_t>());
  }
}

std::vector<std::pair<std::string, double>> ClassificationMetrics::Values() const {
  const auto mean = [&](double sum) { return count_ > 0 ? sum / static_cast<double>(count_) : 0; };
  return {{"top1", mean(static_cast<double>(top1_))},
          {"top5", mean(static_cast<double>(top5_))},
          {"loss", mean(loss_)}};
}

std::span<const char* const> MetricNames() {
  static constexpr const char* kNames[] = {"top1", "top5", "loss"};
  return kNames;
}

bool HigherIsBetter(const std::string& metric) { return metric != "loss"; }

std::string NoteOnMetrics(int64_t classes) {
  if (classes > kTopClasses) return "";
  return fmt::format("top{} is 1 for every sample, for the model has {} classes", kTopClasses,
                     classes);
}

}  // namespace capstan
