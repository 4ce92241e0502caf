#include "engine/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/base/check.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

using Ids = std::vector<int64_t>;

Sampler Make(const SamplerOptions& options) {
  auto sampler = Sampler::Create(options);
  CHECK_OK(sampler);
  return *sampler;
}

Ids IdsOf(const EpochOrder& order) {
  Ids ids;
  for (int64_t i = 0; i < order.count(); ++i) ids.push_back(order.At(i));
  return ids;
}

// What all ranks see in an epoch.
Ids AllRanks(SamplerOptions options, int64_t epoch) {
  Ids all;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    const Ids ids = IdsOf(Make(options).Order({.epoch = epoch}));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

Ids UpTo(int64_t n) {
  Ids ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Ids Sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Sampler, RanksTogetherSeeEachSampleOnceAndEpochsDiffer) {
  for (const int64_t world : {1, 2, 4}) {
    const SamplerOptions options{.size = 16, .batch_size = 2, .world = world, .seed = 7};
    std::vector<Ids> epochs;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      epochs.push_back(AllRanks(options, epoch));
      EXPECT_EQ(Sorted(epochs.back()), UpTo(16));
      EXPECT_EQ(AllRanks(options, epoch), epochs.back());
    }
    EXPECT_NE(epochs[0], epochs[1]);
    EXPECT_NE(epochs[1], epochs[2]);
    SamplerOptions other = options;
    other.seed = 8;
    EXPECT_NE(AllRanks(other, 0), epochs[0]);
  }
}

TEST(Sampler, GlobalBatchesDoNotDependOnTheNumberOfRanks) {
  const Ids whole = IdsOf(Make({.size = 40, .batch_size = 8}).Order({}));
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Ids part = IdsOf(Make({.size = 40, .batch_size = 2, .rank = rank, .world = 4}).Order({}));
    for (size_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part[i], whole[i / 2 * 8 + static_cast<size_t>(rank) * 2 + i % 2]);
    }
  }
}

TEST(Sampler, TrainingDropsTheTailAndCountsIt) {
  const Sampler sampler = Make({.size = 23, .batch_size = 4, .world = 2});
  EXPECT_EQ(sampler.batches_per_epoch(), 2);
  EXPECT_EQ(sampler.samples_per_epoch(), 8);
  EXPECT_EQ(sampler.dropped_per_epoch(), 7);
}

TEST(Sampler, AnEvenTailIsKeptOnRequest) {
  const SamplerOptions options{.size = 23, .batch_size = 4, .world = 2, .drop_last = false};
  EXPECT_EQ(Sorted(AllRanks(options, 1)), UpTo(23));
  const EpochOrder order = Make(options).Order({});
  EXPECT_EQ(order.batches(), 3);
  EXPECT_EQ(order.BatchSize(1), 4);
  EXPECT_EQ(order.BatchSize(2), 3);
}

TEST(Sampler, EvaluationSeesEverySampleOnceInOrder) {
  for (const int64_t size : {1, 5, 20, 33}) {
    for (const int64_t world : {1, 2, 4}) {
      for (const int64_t batch : {1, 3, 64}) {
        const SamplerOptions options{
            .mode = SamplerMode::kEvaluate, .size = size, .batch_size = batch, .world = world};
        EXPECT_EQ(Sorted(AllRanks(options, 0)), UpTo(size));
        if (world == 1) {
          EXPECT_EQ(AllRanks(options, 5), UpTo(size));
        }
      }
    }
  }
}

TEST(Sampler, SetsWithoutAStepAreRefused) {
  const auto message = [](const SamplerOptions& options) {
    return MessageOf(Sampler::Create(options).status());
  };
  EXPECT_EQ(message({.size = 5, .batch_size = 8}),
            "5 samples, batch 8, drop_last: no step possible; lower batch_size");
  EXPECT_NE(message({.size = 15, .batch_size = 8, .world = 2}).find("batch 8 on each of 2 ranks"),
            std::string::npos);
  EXPECT_EQ(message({.size = 0}), "the data set holds no sample");
  EXPECT_NE(message({.size = 9, .batch_size = 2, .world = 2, .drop_last = false})
                .find("some ranks have none"),
            std::string::npos);
}

TEST(Sampler, AnotherLayoutGoesOnWhereTheFirstStopped) {
  SamplerOptions options{.size = 48, .batch_size = 4, .world = 2, .seed = 3};
  const SamplerState state = Make(options).Order({.epoch = 2}).StateAfter(3, 0);
  EXPECT_EQ(state, (SamplerState{.epoch = 2, .samples = 24}));
  Ids seen;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    Ids ids = IdsOf(Make(options).Order({.epoch = 2}));
    ids.resize(12);
    seen.insert(seen.end(), ids.begin(), ids.end());
  }
  const SamplerOptions later{.size = 48, .batch_size = 6, .world = 1, .seed = 3};
  const Ids rest = IdsOf(Make(later).Order(state));
  seen.insert(seen.end(), rest.begin(), rest.end());
  EXPECT_EQ(Sorted(seen), UpTo(48));
}

TEST(Sampler, FillsComeFromTheDroppedTailThenFromTheStart) {
  const Sampler sampler =
      Make({.size = 11, .batch_size = 2, .rank = 1, .world = 2, .shuffle = false});
  const EpochOrder order = sampler.Order({});
  ASSERT_EQ(IdsOf(order), (Ids{2, 3, 6, 7}));
  EXPECT_EQ(order.At(4), 9);  // of the tail 8 9 10, the second half
  EXPECT_EQ(order.At(5), 10);
  EXPECT_EQ(order.At(6), 2);
  EXPECT_EQ(order.At(9), 7);
  EXPECT_EQ(order.At(10), 2);
  // A resumed order fills alike.
  const EpochOrder resumed = sampler.Order(order.StateAfter(1, 0));
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(resumed.At(i), order.At(i + 2));
}

TEST(Sampler, ShufflesAMillionEvenly) {
  const EpochOrder order = Make({.size = 1'000'000, .batch_size = 100}).Order({});
  const Ids ids = IdsOf(order);
  // The mean of the first half of a fair shuffle: 499999.5 with a deviation of about 289.
  const double sum = std::accumulate(ids.begin(), ids.begin() + 500'000, 0.0);
  EXPECT_NEAR(sum / 500'000, 499'999.5, 1500);
  EXPECT_EQ(Sorted(ids), UpTo(1'000'000));
}

}  // namespace
}  // namespace capstan
