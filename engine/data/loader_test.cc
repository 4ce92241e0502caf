#include "engine/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "engine/base/check.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

using Ids = std::vector<int64_t>;

// A sample is its index and a draw from its key; some are bad, and how long each takes differs.
class FakeSource final : public SampleSource {
 public:
  explicit FakeSource(int64_t size, std::set<int64_t> bad = {})
      : size_(size), bad_(std::move(bad)), fields_{{.name = "draw", .shape = {3}}} {}

  int64_t size() const override { return size_; }
  std::span<const SampleField> fields() const override { return fields_; }
  std::string Describe(int64_t index) const override { return fmt::format("sample {}", index); }
  std::unique_ptr<SampleWork> NewWork() const override { return std::make_unique<Work>(); }

  absl::Status Prepare(int64_t index, const RandomKey& key, SampleWork* work) const override {
    std::this_thread::sleep_for(
        std::chrono::microseconds(RandomKey(5).Below(static_cast<uint64_t>(index), 60)));
    if (bad_.contains(index)) return DataLoss("damaged");
    static_cast<Work*>(work)->draw = key.Uniform(0);
    return absl::OkStatus();
  }
  void Finish(SampleWork* work, std::span<void* const> out) const override {
    std::fill_n(static_cast<float*>(out[0]), 3, static_cast<Work*>(work)->draw);
  }

 private:
  struct Work final : SampleWork {
    float draw = 0;
  };

  const int64_t size_;
  const std::set<int64_t> bad_;
  const std::vector<SampleField> fields_;
};

std::unique_ptr<Loader> MakeLoader(std::shared_ptr<const SampleSource> source,
                                   const LoaderConfig& config) {
  auto loader = Loader::Create(std::move(source), config);
  CHECK_OK(loader);
  return *std::move(loader);
}

// One line a batch: its epoch, what it holds, what was passed over and the state after it.
std::string Text(const Batch& batch) {
  const auto ids = batch.Get("index").Elements<int64_t>();
  const auto draws = batch.Get("draw").Elements<float>();
  std::string text = fmt::format("{}:", batch.epoch);
  for (size_t i = 0; i < ids.size(); ++i) text += fmt::format(" {}/{}", ids[i], draws[3 * i + 2]);
  for (const BadSample& bad : batch.bad) text += fmt::format(" bad {}", bad.index);
  return text +
         fmt::format(" -> {} {} {}", batch.after.epoch, batch.after.samples, batch.after.skipped);
}

// All batches up to the end of the last epoch.
std::vector<std::string> Read(Loader* loader, const LoaderConfig& config) {
  std::vector<std::string> lines;
  while (loader->state().epoch < config.end_epoch) {
    auto batch = loader->Next();
    if (!batch.ok()) {
      lines.push_back(MessageOf(batch.status()));
      return lines;
    }
    lines.push_back(*batch == nullptr ? "end" : Text(**batch));
  }
  return lines;
}

Ids IndicesOf(const SampleSource& source, const LoaderConfig& config) {
  const std::shared_ptr<const SampleSource> unowned(std::shared_ptr<void>(), &source);
  const auto loader = MakeLoader(unowned, config);
  Ids all;
  while (loader->state().epoch < config.end_epoch) {
    auto batch = loader->Next();
    CHECK_OK(batch);
    if (*batch == nullptr) continue;
    const auto ids = (*batch)->Get("index").Elements<int64_t>();
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

LoaderConfig TwoEpochs(int64_t batch_size, int64_t workers = 2) {
  return {.sampler = {.batch_size = batch_size, .seed = 3},
          .loader = {.num_workers = workers, .prefetch = 2},
          .bad_samples = {.limit = 0.5},
          .seed = 11,
          .end_epoch = 2};
}

TEST(Loader, WorkersAndPrefetchNeverShow) {
  for (const std::set<int64_t>& bad : {std::set<int64_t>{}, {0, 1, 2, 17, 29, 30, 48}}) {
    const auto source = std::make_shared<FakeSource>(50, bad);
    for (const SamplerMode mode : {SamplerMode::kTrain, SamplerMode::kEvaluate}) {
      for (const bool drop_last : {true, false}) {
        LoaderConfig config = TwoEpochs(4, 0);
        config.sampler.mode = mode;
        config.sampler.drop_last = drop_last;
        const auto wanted = Read(MakeLoader(source, config).get(), config);
        EXPECT_GE(wanted.size(), 24u);
        for (const int64_t workers : {1, 3}) {
          for (const int64_t prefetch : {1, 5}) {
            config.loader = {.num_workers = workers, .prefetch = prefetch};
            EXPECT_EQ(Read(MakeLoader(source, config).get(), config), wanted);
          }
        }
      }
    }
  }
}

TEST(Loader, ResumesAtEveryPositionOfTwoEpochs) {
  const auto source = std::make_shared<FakeSource>(23, std::set<int64_t>{2, 3, 20});
  const LoaderConfig config = TwoEpochs(3);
  const auto whole = Read(MakeLoader(source, config).get(), config);
  ASSERT_EQ(whole.size(), 16u);
  for (size_t position = 0; position < whole.size(); ++position) {
    const auto first = MakeLoader(source, config);
    for (size_t i = 0; i < position; ++i) CHECK_OK(first->Next());
    LoaderConfig later = config;
    later.start = first->state();
    later.loader.num_workers = static_cast<int64_t>(position % 3);
    const auto rest = Read(MakeLoader(source, later).get(), later);
    EXPECT_EQ(rest, (std::vector<std::string>(whole.begin() + static_cast<std::ptrdiff_t>(position),
                                              whole.end())))
        << "resumed at " << position;
  }
}

TEST(Loader, DrawsDependOnSeedEpochAndSampleAlone) {
  const auto source = std::make_shared<FakeSource>(24);
  const auto draws = [&](int64_t batch_size, int64_t rank, int64_t world, uint64_t seed) {
    LoaderConfig config = TwoEpochs(batch_size);
    config.sampler.rank = rank;
    config.sampler.world = world;
    config.seed = seed;
    std::set<std::string> lines;
    const auto loader = MakeLoader(source, config);
    while (loader->state().epoch < 2) {
      auto batch = loader->Next();
      CHECK_OK(batch);
      if (*batch == nullptr) continue;
      for (int64_t i = 0; i < (*batch)->size; ++i) {
        lines.insert(
            fmt::format("{} {} {}", (*batch)->epoch,
                        (*batch)->Get("index").Elements<int64_t>()[static_cast<size_t>(i)],
                        (*batch)->Get("draw").Elements<float>()[static_cast<size_t>(3 * i)]));
      }
    }
    return lines;
  };
  const auto wanted = draws(4, 0, 1, 11);
  EXPECT_EQ(wanted.size(), 48u);
  EXPECT_EQ(draws(6, 0, 1, 11), wanted);
  auto ranks = draws(4, 0, 2, 11);
  ranks.merge(draws(4, 1, 2, 11));
  EXPECT_EQ(ranks, wanted);
  EXPECT_NE(draws(4, 0, 1, 12), wanted);
}

TEST(Loader, BadSamplesSlotsAreFilledByTheNextOfTheOrder) {
  LoaderConfig config = TwoEpochs(4);
  config.sampler.shuffle = false;
  config.end_epoch = 1;
  EXPECT_EQ(IndicesOf(FakeSource(13, {1, 6}), config),
            (Ids{0, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 0}));
  config.sampler.drop_last = false;
  EXPECT_EQ(IndicesOf(FakeSource(10, {1}), config), (Ids{0, 2, 3, 4, 5, 6, 7, 8, 9, 0}));
}

TEST(Loader, EvaluationNeverFills) {
  LoaderConfig config = TwoEpochs(4);
  config.sampler.mode = SamplerMode::kEvaluate;
  config.end_epoch = 1;
  config.bad_samples.limit = 1;
  const auto source = std::make_shared<FakeSource>(14, std::set<int64_t>{1, 4, 5, 6, 7, 13});
  const auto loader = MakeLoader(source, config);
  std::vector<int64_t> sizes;
  size_t bad = 0;
  while (true) {
    auto batch = loader->Next();
    CHECK_OK(batch);
    if (*batch == nullptr) break;
    EXPECT_EQ((*batch)->Get("draw").type.shape, (Shape{(*batch)->size, 3}));
    sizes.push_back((*batch)->size);
    bad += (*batch)->bad.size();
  }
  // The second batch, 4 to 7, is left out.
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 4, 1}));
  EXPECT_EQ(bad + loader->bad_at_end().size(), 6u);
  EXPECT_EQ(IndicesOf(*source, config), (Ids{0, 2, 3, 8, 9, 10, 11, 12}));
}

TEST(Loader, EvaluationOfTwentyByBatchesOf64) {
  LoaderConfig config = TwoEpochs(64);
  config.sampler.mode = SamplerMode::kEvaluate;
  config.end_epoch = 1;
  EXPECT_EQ(IndicesOf(FakeSource(20), config).size(), 20u);
}

TEST(Loader, BeyondTheLimitTheRunEndsWithNamesAndReasons) {
  LoaderConfig config = TwoEpochs(4);
  config.sampler.shuffle = false;
  config.bad_samples.limit = 0.1;
  const auto source = std::make_shared<FakeSource>(20, std::set<int64_t>{5, 7, 12});
  const auto loader = MakeLoader(source, config);
  for (int i = 0; i < 2; ++i) {
    const auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << i;
  }
  for (int i = 0; i < 2; ++i) {
    const auto batch = loader->Next();
    ASSERT_EQ(batch.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(
        MessageOf(batch.status()),
        "3 of 20 samples of epoch 1 cannot be read, more than bad_samples.limit 0.1 allows; mend "
        "the files, take them out of the data set, or raise the limit\n  sample 5: damaged\n  "
        "sample 7: damaged\n  sample 12: damaged");
  }
}

TEST(Loader, AStopEndsTheWaitAndLosesNothing) {
  LoaderConfig config = TwoEpochs(4);
  // Nothing is ready before Next asks for it.
  config.loader.num_workers = 0;
  const auto source = std::make_shared<FakeSource>(20);
  const auto undisturbed = MakeLoader(source, config);
  std::atomic<bool> stop = true;
  config.stop = &stop;
  const auto loader = MakeLoader(source, config);
  for (int i = 0; i < 3; ++i) {
    const SamplerState before = loader->state();
    stop = true;
    EXPECT_EQ(loader->Next().status().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(loader->state(), before);
    stop = false;
    EXPECT_EQ(Text(**loader->Next()), Text(**undisturbed->Next()));
  }
}

TEST(Loader, ASetThatShrankSinceTheStopIsRefused) {
  LoaderConfig config = TwoEpochs(4);
  config.start.samples = 16;
  const auto loader = Loader::Create(std::make_shared<FakeSource>(12), config);
  EXPECT_EQ(MessageOf(loader.status()),
            "the data set has 12 samples, but 16 of this epoch were read before the stop; give it "
            "back its samples, or start anew");
}

TEST(Loader, ThePolicyFailEndsAtTheFirstBadSample) {
  LoaderConfig config = TwoEpochs(4);
  config.bad_samples.policy = BadSampleOptions::Policy::kFail;
  const auto loader = MakeLoader(std::make_shared<FakeSource>(20, std::set<int64_t>{5}), config);
  const auto lines = Read(loader.get(), config);
  EXPECT_NE(lines.back().find("bad_samples.policy: fail"), std::string::npos) << lines.back();
  EXPECT_NE(lines.back().find("sample 5: damaged"), std::string::npos) << lines.back();
}

TEST(Loader, ASetWithoutAnySoundSampleEndsEvenWithoutALimit) {
  LoaderConfig config = TwoEpochs(2);
  config.bad_samples.limit = 1;
  const auto loader =
      MakeLoader(std::make_shared<FakeSource>(5, std::set<int64_t>{0, 1, 2, 3, 4}), config);
  EXPECT_EQ(loader->Next().status().code(), absl::StatusCode::kDataLoss);
}

TEST(Loader, BatchesUseAFixedSetOfAlignedBuffers) {
  LoaderConfig config = TwoEpochs(3);
  const auto loader = MakeLoader(std::make_shared<FakeSource>(60), config);
  std::set<const void*> places;
  while (loader->state().epoch < 2) {
    auto batch = loader->Next();
    CHECK_OK(batch);
    if (*batch == nullptr) continue;
    for (const BatchTensor& t : (*batch)->tensors) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.view.data) % 64, 0u);
    }
    places.insert((*batch)->Get("draw").data);
  }
  EXPECT_LE(places.size(), 4u);  // prefetch 2 + two held
}

TEST(Loader, TheAllocatorIsTheCallers) {
  int live = 0, made = 0;
  LoaderConfig config = TwoEpochs(3);
  config.allocator = {.allocate =
                          [&](size_t bytes) {
                            ++made;
                            ++live;
                            return std::aligned_alloc(64, bytes);
                          },
                      .release =
                          [&](void* p) {
                            --live;
                            std::free(p);
                          }};
  Read(MakeLoader(std::make_shared<FakeSource>(60), config).get(), config);
  EXPECT_EQ(made, 4);
  EXPECT_EQ(live, 0);
}

TEST(Loader, StopsPromptlyAtAnyTime) {
  const auto source = std::make_shared<FakeSource>(100'000);
  const auto start = std::chrono::steady_clock::now();
  for (int batches = 0; batches < 40; ++batches) {
    LoaderConfig config = TwoEpochs(4, 1 + batches % 3);
    const auto loader = MakeLoader(source, config);
    for (int i = 0; i < batches / 2; ++i) CHECK_OK(loader->Next());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 2.0);
}

TEST(Loader, CountsTheTimeThatNextWaits) {
  LoaderConfig config = TwoEpochs(10, 0);
  const auto loader = MakeLoader(std::make_shared<FakeSource>(100), config);
  const auto start = std::chrono::steady_clock::now();
  Read(loader.get(), config);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GT(loader->waited_seconds(), 0.005);
  EXPECT_LE(loader->waited_seconds(), seconds.count());
}

TEST(Loader, SmallSetsAreRefusedAtTheStart) {
  const auto loader = Loader::Create(std::make_shared<FakeSource>(5), TwoEpochs(8));
  EXPECT_EQ(MessageOf(loader.status()),
            "5 samples, batch 8, drop_last: no step possible; lower batch_size");
}

}  // namespace
}  // namespace capstan
