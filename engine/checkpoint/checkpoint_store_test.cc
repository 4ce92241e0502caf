#include "engine/checkpoint/checkpoint_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_testing.h"
#include "engine/checkpoint/describe.h"

namespace capstan {
namespace {

using Names = std::vector<std::string>;

std::string TargetOf(const ScratchFolder& scratch, const std::string& pointer) {
  std::error_code error;
  return std::filesystem::read_symlink(scratch.File("checkpoints/" + pointer), error).string();
}

// Iterations of the folders there are, in order.
std::vector<int64_t> Iterations(const ScratchFolder& scratch) {
  std::vector<int64_t> iterations;
  for (const std::string& name : NamesIn(scratch.File("checkpoints"))) {
    if (const auto iteration = IterationOfName(name)) iterations.push_back(*iteration);
  }
  std::sort(iterations.begin(), iterations.end());
  return iterations;
}

TEST(CheckpointStore, WhatASaveLeaves) {
  const ScratchFolder scratch;
  auto store = StoreIn(scratch.path());
  const SavedCheckpoint saved = SaveAt(*store, 1000, /*best=*/true);
  EXPECT_EQ(saved.path, scratch.File("checkpoints/iteration_000001000"));
  EXPECT_TRUE(saved.best);
  EXPECT_EQ(NamesIn(scratch.File("checkpoints")),
            (Names{".lock", "best", "iteration_000001000", "latest"}));
  EXPECT_EQ(NamesIn(saved.path),
            (Names{"manifest.json", "optimizer.safetensors", "state.json", "weights.safetensors"}));
  EXPECT_EQ(TargetOf(scratch, "latest"), "iteration_000001000");
  EXPECT_EQ(TargetOf(scratch, "best"), "iteration_000001000");
}

TEST(CheckpointStore, RoundTrip) {
  const ScratchFolder scratch;
  auto store = StoreIn(scratch.path());
  TrainingState state = StateOf(7);
  state.sampler = {.epoch = 1, .samples = 40, .skipped = {1}};
  state.best_metric = 0.1;
  ASSERT_TRUE(store->Save(state, Tensors(7).groups()).ok());
  auto newest = store->OpenNewest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_TRUE(newest->passed_over.empty());
  const CheckpointReader& reader = *newest->reader;
  EXPECT_EQ(reader.state(), state);
  EXPECT_TRUE(IsOfOneIteration(reader));
  EXPECT_EQ(reader.Groups(), (Names{"weights", "optimizer"}));
  EXPECT_EQ(reader.Group("weights")->Names(), (Names{"fc.weight", "fc.bias"}));
  EXPECT_EQ(reader.Find("weights", "fc.bias")->ToString(), "f32[16,2]");
  EXPECT_EQ(reader.Find("weights", "fc"), nullptr);
  EXPECT_EQ(reader.Find("moments", "fc.bias"), nullptr);
  const HostTensor to(*reader.Find("weights", "fc.bias"));
  EXPECT_EQ(MessageOf(reader.Read("moments", "fc.bias", to.view())),
            scratch.File("checkpoints/iteration_000000007") +
                ": no group \"moments\"; it has: weights, optimizer");
  auto latest = CheckpointReader::Open(scratch.File("checkpoints/latest"));
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_TRUE(latest->path().ends_with("/iteration_000000007"));
}

TEST(CheckpointStore, LargeGroupsAreSplitWithAnIndex) {
  const ScratchFolder scratch;
  auto store =
      CheckpointStore::Create({.output_dir = scratch.path(), .keep = 3, .max_file_bytes = 150});
  ASSERT_TRUE(store.ok());
  const SavedCheckpoint saved = SaveAt(**store, 3);
  EXPECT_TRUE(NameExists(saved.path + "/weights-00001-of-00002.safetensors"));
  EXPECT_TRUE(NameExists(saved.path + "/weights-00002-of-00002.safetensors"));
  EXPECT_TRUE(IsOfOneIteration(*CheckpointReader::Open(saved.path)));
  auto files = TensorFiles::Open(saved.path + "/weights.safetensors.index.json");
  ASSERT_TRUE(files.ok()) << files.status();
  // File by file, in the order of their first names.
  EXPECT_EQ(files->Names(), (Names{"fc.bias", "fc.weight"}));
}

TEST(CheckpointStore, KeepNeverRemovesTheBestOrTheNewest) {
  const ScratchFolder scratch;
  auto store = StoreIn(scratch.path(), 2);
  for (int64_t i = 1; i <= 6; ++i) SaveAt(*store, i, /*best=*/i == 2);
  EXPECT_EQ(Iterations(scratch), (std::vector<int64_t>{2, 5, 6}));
  EXPECT_EQ(TargetOf(scratch, "best"), CheckpointName(2));
  EXPECT_EQ(TargetOf(scratch, "latest"), CheckpointName(6));
  ASSERT_TRUE(store->MarkBest(5).ok());
  EXPECT_EQ(SaveAt(*store, 7).removed, (Names{scratch.File("checkpoints/iteration_000000002")}));
  SaveAt(*store, 8);
  EXPECT_EQ(Iterations(scratch), (std::vector<int64_t>{5, 7, 8}));
  EXPECT_EQ(TargetOf(scratch, "best"), CheckpointName(5));
  EXPECT_EQ(store->MarkBest(2).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TargetOf(scratch, "best"), CheckpointName(5));
}

TEST(CheckpointStore, ARunThatWentBackGoesOnFromItsOwnSaves) {
  const ScratchFolder scratch;
  SaveAt(*StoreIn(scratch.path()), 100);
  {
    auto store = StoreIn(scratch.path());
    SaveAt(*store, 200);
    SaveAt(*store, 120);
    EXPECT_EQ(store->OpenNewest()->reader->iteration(), 120);
  }
  auto store = StoreIn(scratch.path(), 1);
  EXPECT_EQ(store->OpenNewest()->reader->iteration(), 120);
  EXPECT_EQ(TargetOf(scratch, "latest"), CheckpointName(120));
  SaveAt(*store, 130);
  EXPECT_EQ(Iterations(scratch), (std::vector<int64_t>{130}));
}

TEST(CheckpointStore, SavingAnIterationAgainReplacesIt) {
  const ScratchFolder scratch;
  auto store = StoreIn(scratch.path());
  SaveAt(*store, 5);
  TrainingState state = StateOf(5);
  state.epoch = 9;
  ASSERT_TRUE(store->Save(state, Tensors(5).groups()).ok());
  EXPECT_EQ(store->OpenNewest()->reader->state().epoch, 9);
  EXPECT_EQ(NamesIn(scratch.File("checkpoints")),
            (Names{".lock", "iteration_000000005", "latest"}));
}

TEST(CheckpointStore, TwoStoresOnOneFolder) {
  const ScratchFolder scratch;
  auto first = StoreIn(scratch.path());
  SaveAt(*first, 1);
  auto second = CheckpointStore::Create({.output_dir = scratch.path()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(second.status()),
            scratch.File("checkpoints") + " is in use by process " + std::to_string(getpid()) +
                "; wait until that job ends, or give this one another output_dir");
  SaveAt(*first, 2);
  EXPECT_EQ(OpenNewestCheckpoint(scratch.path())->reader->iteration(), 2);
  first.reset();
  SaveAt(*StoreIn(scratch.path()), 3);
}

TEST(CheckpointStore, ReadersNeedNoLockWhileAJobSaves) {
  const ScratchFolder scratch;
  auto store = StoreIn(scratch.path(), 1);
  SaveAt(*store, 0);
  std::atomic<bool> done = false;
  std::thread job([&store, &done] {
    for (int64_t i = 1; i <= 150; ++i) SaveAt(*store, i);
    done = true;
  });
  int64_t last = 0;
  while (!done) {
    auto newest = OpenNewestCheckpoint(scratch.path());
    if (!newest.ok() || !newest->reader.has_value() || !newest->passed_over.empty() ||
        newest->reader->iteration() < last || !IsOfOneIteration(*newest->reader)) {
      ADD_FAILURE() << "after iteration " << last << ": " << newest.status();
      break;
    }
    last = newest->reader->iteration();
  }
  job.join();
}

TEST(CheckpointStore, AnEmptyFolderIsNoCheckpoint) {
  const ScratchFolder scratch;
  auto newest = OpenNewestCheckpoint(scratch.path());
  ASSERT_TRUE(newest.ok());
  EXPECT_FALSE(newest->reader.has_value());
  auto store = StoreIn(scratch.path());
  EXPECT_FALSE(store->OpenNewest()->reader.has_value());
  EXPECT_EQ(MessageOf(CheckpointReader::Open(scratch.File("checkpoints/latest")).status()),
            scratch.File("checkpoints/latest") + ": no such checkpoint folder");
}

TEST(CheckpointStore, LeftoversAreCleanedAndPointersMended) {
  const ScratchFolder scratch;
  SaveAt(*StoreIn(scratch.path()), 1, /*best=*/true);
  SaveAt(*StoreIn(scratch.path()), 2, /*best=*/true);
  namespace fs = std::filesystem;
  const std::string folder = scratch.File("checkpoints");
  // As a save killed before its pointers moved leaves it.
  for (const char* pointer : {"/latest", "/best"}) {
    fs::remove(folder + pointer);
    fs::create_symlink(CheckpointName(1), folder + pointer);
  }
  fs::create_directory(folder + "/.saving_iteration_000000003");
  Spill(folder + "/.saving_iteration_000000003/weights.safetensors", "half");
  fs::create_directory(folder + "/.removing_iteration_000000000");
  fs::create_symlink("x", folder + "/.pointing_latest");
  EXPECT_EQ(OpenNewestCheckpoint(scratch.path())->reader->iteration(), 2);
  const auto store = StoreIn(scratch.path());
  EXPECT_EQ(store->notes().size(), 3) << testing::PrintToString(store->notes());
  EXPECT_EQ(NamesIn(folder),
            (Names{".lock", "best", CheckpointName(1), CheckpointName(2), "latest"}));
  EXPECT_EQ(TargetOf(scratch, "latest"), CheckpointName(2));
  EXPECT_EQ(TargetOf(scratch, "best"), CheckpointName(2));
}

TEST(CheckpointStore, AnInterruptedReplacementIsUndone) {
  const ScratchFolder scratch;
  SaveAt(*StoreIn(scratch.path()), 1);
  const std::string folder = scratch.File("checkpoints");
  std::filesystem::rename(folder + "/iteration_000000001",
                          folder + "/.replaced_iteration_000000001");
  const auto store = StoreIn(scratch.path());
  EXPECT_EQ(store->OpenNewest()->reader->iteration(), 1);
}

TEST(CheckpointStore, BadArguments) {
  const ScratchFolder scratch;
  EXPECT_FALSE(CheckpointStore::Create({.output_dir = ""}).ok());
  EXPECT_FALSE(CheckpointStore::Create({.output_dir = scratch.path(), .keep = 0}).ok());
  Spill(scratch.File("file"), "");
  EXPECT_FALSE(CheckpointStore::Create({.output_dir = scratch.File("file")}).ok());
  auto store = StoreIn(scratch.path());
  const HostTensor a(TensorType{DType::kF32, {2}});
  const auto error = [&](const std::vector<TensorGroup>& groups) {
    const std::string message = MessageOf(store->Save(StateOf(1), groups).status());
    return message.substr(0, message.find('\n'));
  };
  EXPECT_EQ(error({{"../x", {}}}), "tensor group \"../x\": its name may have a-z, 0-9 and _ only");
  EXPECT_EQ(error({{"x", {}}, {"x", {}}}), "two tensor groups named \"x\"");
  EXPECT_EQ(error({{"x", {{"a", a.view()}, {"a", a.view()}}}}),
            "two tensors named \"a\" in group x");
  EXPECT_EQ(NamesIn(scratch.File("checkpoints")), (Names{".lock"}));
}

TEST(Describe, PrintsTensorsAndChecksums) {
  const ScratchFolder scratch;
  const SavedCheckpoint saved = SaveAt(*StoreIn(scratch.path()), 4, /*best=*/true);
  const auto has = [](const absl::StatusOr<std::string>& text, const std::string& part) {
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_NE(text->find(part), std::string::npos) << part << " in\n" << *text;
  };
  has(DescribeCheckpoint(saved.path), "iteration 4, save number 1");
  has(DescribeCheckpoint(saved.path), "\"fc.weight\"  F32[16,2]  128 bytes");
  has(DescribeCheckpoint(saved.path), "all checksums hold");
  has(DescribeCheckpoint(saved.path + "/weights.safetensors"), "2 tensors, 256 bytes");
  has(DescribeCheckpoint(scratch.path()), "latest -> iteration_000000004");
  std::string bytes = Slurp(saved.path + "/optimizer.safetensors");
  bytes.back() ^= 1;
  Spill(saved.path + "/optimizer.safetensors", bytes);
  has(DescribeCheckpoint(scratch.File("checkpoints/best")), "its bytes changed");
  Spill(saved.path + "/manifest.json", "{}");
  has(DescribeCheckpoint(saved.path), "DAMAGED");
  has(DescribeCheckpoint(scratch.path()), "DAMAGED");
  EXPECT_FALSE(DescribeCheckpoint(scratch.File("nothing")).ok());
  EXPECT_FALSE(DescribeCheckpoint("/").ok());
}

}  // namespace
}  // namespace capstan
