#include "engine/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace capstan {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Adds rows of scores as T.
template <typename T>
void Add(ClassificationMetrics* metrics, const std::vector<std::vector<double>>& rows,
         std::vector<int64_t> labels, double loss_sum = 0) {
  std::vector<T> scores;
  for (const auto& row : rows) scores.insert(scores.end(), row.begin(), row.end());
  const auto n = static_cast<int64_t>(rows.size());
  const auto k = static_cast<int64_t>(rows[0].size());
  metrics->Add({scores.data(), {DTypeOf<T>(), {n, k}}}, {labels.data(), {DType::kI64, {n}}},
               loss_sum);
}

double Top1(const ClassificationMetrics& m) { return m.Values()[0].second; }
double Top5(const ClassificationMetrics& m) { return m.Values()[1].second; }

TEST(Metrics, TopOneAndFive) {
  ClassificationMetrics m(-100);
  const std::vector<double> falling = {6, 5, 4, 3, 2, 1};
  Add<float>(&m, {falling, falling, falling, falling}, {0, 1, 4, 5}, 2);
  EXPECT_THAT(m.Values(), ElementsAre(Pair("top1", 0.25), Pair("top5", 0.75), Pair("loss", 0.5)));
  EXPECT_EQ(m.count(), 4);
}

TEST(Metrics, TiesRankTheLowerClassFirst) {
  for (int64_t label = 0; label < 7; ++label) {
    ClassificationMetrics m(-100);
    Add<double>(&m, {{1, 1, 1, 1, 1, 1, 1}}, {label});
    EXPECT_EQ(Top1(m), label == 0 ? 1 : 0);
    EXPECT_EQ(Top5(m), label < 5 ? 1 : 0);
  }
}

// Case EVAL-02.
TEST(Metrics, FewerThanFiveClasses) {
  ClassificationMetrics m(-100);
  Add<float>(&m, {{3, 2, 1}, {3, 2, 1}}, {2, 0});
  EXPECT_EQ(Top1(m), 0.5);
  EXPECT_EQ(Top5(m), 1);
}

// Case EVAL-01: 10 samples, 8 of them right, at any batch size.
TEST(Metrics, MeansAreOverSamplesNotBatches) {
  for (size_t batch = 1; batch <= 10; ++batch) {
    ClassificationMetrics m(-100);
    for (size_t start = 0; start < 10; start += batch) {
      std::vector<std::vector<double>> rows;
      for (size_t i = start; i < std::min<size_t>(10, start + batch); ++i) {
        rows.push_back({i < 8 ? 1.0 : 0.0, 0.5});
      }
      const auto n = rows.size();
      Add<float>(&m, rows, std::vector<int64_t>(n, 0), 0.5 * static_cast<double>(n));
    }
    EXPECT_EQ(Top1(m), 0.8);
    EXPECT_EQ(m.Values()[2].second, 0.5);
    EXPECT_EQ(m.count(), 10);
  }
}

TEST(Metrics, IgnoredLabelsDoNotCount) {
  ClassificationMetrics m(-1);
  Add<float>(&m, {{1, 0}, {1, 0}, {1, 0}}, {-1, 0, 1}, 3);
  EXPECT_EQ(m.count(), 2);
  EXPECT_THAT(m.Values(), ElementsAre(Pair("top1", 0.5), Pair("top5", 1), Pair("loss", 1.5)));
}

TEST(Metrics, LabelsOutOfRangeAreWrong) {
  ClassificationMetrics m(-100);
  Add<float>(&m, {{1, 0}, {1, 0}}, {-1, 2});
  EXPECT_EQ(m.count(), 2);
  EXPECT_EQ(Top1(m), 0);
  EXPECT_EQ(Top5(m), 0);
}

TEST(Metrics, NanScoresAreWrongWhereverTheyAre) {
  ClassificationMetrics m(-100);
  Add<float>(&m, {{kNan, 0}, {1, kNan}, {kNan, kNan}}, {0, 0, 1});
  EXPECT_EQ(m.count(), 3);
  EXPECT_EQ(Top1(m), 0);
  EXPECT_EQ(Top5(m), 0);
}

TEST(Metrics, InfiniteScoresRank) {
  const double inf = std::numeric_limits<double>::infinity();
  ClassificationMetrics m(-100);
  Add<double>(&m, {{0, inf}, {-inf, 0}}, {1, 1});
  EXPECT_EQ(Top1(m), 1);
}

TEST(Metrics, NothingIsZeroNotNan) {
  ClassificationMetrics m(-100);
  EXPECT_THAT(m.Values(), ElementsAre(Pair("top1", 0), Pair("top5", 0), Pair("loss", 0)));
}

TEST(Metrics, Direction) {
  EXPECT_TRUE(HigherIsBetter("top1"));
  EXPECT_TRUE(HigherIsBetter("top5"));
  EXPECT_FALSE(HigherIsBetter("loss"));
}

}  // namespace
}  // namespace capstan
