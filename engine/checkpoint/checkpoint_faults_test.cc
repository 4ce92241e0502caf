// What a checkpoint folder survives: kills, changed bytes, cuts, a full disk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <random>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/checkpoint_store.h"
#include "engine/checkpoint/checkpoint_testing.h"
#include "engine/checkpoint/manifest.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

struct Report {
  int64_t iteration;
  int64_t microseconds;  // that its save took
};

// Saves iteration after iteration from `first` on, and reports each that is complete.
[[noreturn]] void SaveForEver(const std::string& output_dir, int64_t first, int report_to) {
  using Clock = std::chrono::steady_clock;
  auto store = StoreIn(output_dir, 2);
  for (int64_t i = first;; ++i) {
    const Clock::time_point start = Clock::now();
    SaveAt(*store, i, /*best=*/i % 5 == 0);
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    const Report report{i, took.count()};
    CHECK(write(report_to, &report, sizeof(report)) == sizeof(report)) << "the parent is gone";
  }
}

TEST(Faults, KilledWhileSaving) {
  const ScratchFolder scratch;
  std::mt19937 random(11);
  Report last{0, 1000};  // the newest that was complete when its process was killed
  int leftovers = 0;
  for (int kill_number = 0; kill_number < 60; ++kill_number) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      SaveForEver(scratch.path(), last.iteration + 1, ends[1]);
    }
    close(ends[1]);
    // Perhaps a whole save, then any instant of the next one, however fast the disk is.
    for (uint32_t saves = random() % 2; saves > 0; --saves) {
      ASSERT_EQ(read(ends[0], &last, sizeof(last)), sizeof(last));
    }
    usleep(random() % static_cast<uint32_t>(2 * last.microseconds));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (Report r{}; read(ends[0], &r, sizeof(r)) == sizeof(r);) last = r;
    close(ends[0]);

    auto newest = OpenNewestCheckpoint(scratch.path());
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_TRUE(newest->passed_over.empty()) << newest->passed_over.front();
    if (last.iteration == 0 && !newest->reader.has_value()) continue;
    ASSERT_TRUE(newest->reader.has_value());
    // The kill may have come between the last save and its report.
    const int64_t found = newest->reader->iteration();
    EXPECT_GE(found, last.iteration);
    EXPECT_LE(found, last.iteration + 1);
    EXPECT_TRUE(IsOfOneIteration(*newest->reader));
    last.iteration = found;
    for (const char* pointer : {"checkpoints/latest", "checkpoints/best"}) {
      if (!NameExists(scratch.File(pointer))) continue;
      auto reader = CheckpointReader::Open(scratch.File(pointer));
      ASSERT_TRUE(reader.ok()) << reader.status();
      EXPECT_TRUE(IsOfOneIteration(*reader));
    }
    for (const std::string& name : NamesIn(scratch.File("checkpoints"))) {
      if (!name.starts_with('.') || name == ".lock") continue;
      ++leftovers;
      break;
    }
  }
  EXPECT_GT(last.iteration, 20);
  EXPECT_GT(leftovers, 10) << "the kills missed the saves";
  const auto store = StoreIn(scratch.path(), 2);
  for (const std::string& name : NamesIn(scratch.File("checkpoints"))) {
    EXPECT_TRUE(!name.starts_with('.') || name == ".lock") << name;
  }
}

// Two checkpoints, 1 and 2; tests damage the second.
class DamageTest : public testing::Test {
 protected:
  DamageTest() {
    const auto store = StoreIn(scratch_.path());
    SaveAt(*store, 1);
    SaveAt(*store, 2);
  }

  // The second is refused with a message that names `file`, and the first taken instead.
  void ExpectFallback(const std::string& file, const std::string& what) {
    const std::string path = folder_ + "/" + file;
    const auto reader = CheckpointReader::Open(folder_);
    ASSERT_FALSE(reader.ok()) << what;
    const std::string message = MessageOf(reader.status());
    ASSERT_NE(message.find(path), std::string::npos) << what << ": " << message;
    const auto newest = OpenNewestCheckpoint(scratch_.path());
    ASSERT_TRUE(newest.ok()) << what << newest.status();
    ASSERT_EQ(newest->reader->iteration(), 1) << what;
    ASSERT_EQ(newest->passed_over.size(), 1) << what;
    const std::string& passed_over = newest->passed_over.front();
    ASSERT_NE(passed_over.find(path), std::string::npos) << passed_over;
    ASSERT_TRUE(passed_over.ends_with("; using " + scratch_.File("checkpoints/") +
                                      CheckpointName(1) + " instead"))
        << passed_over;
  }

  ScratchFolder scratch_;
  std::string folder_ = scratch_.File("checkpoints/" + CheckpointName(2));
};

TEST_F(DamageTest, EveryByteOfEveryFile) {
  std::mt19937 random(3);
  int flips = 0;
  for (const std::string& name : NamesIn(folder_)) {
    const std::string path = folder_ + "/" + name;
    const std::string good = Slurp(path);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << random() % 8));
      Spill(path, bad);
      // The fall-back is the same code for each; the refusal is what may miss a byte.
      if (i % 16 == 0) {
        ExpectFallback(name, name + " byte " + std::to_string(i));
      } else {
        const auto reader = CheckpointReader::Open(folder_);
        ASSERT_FALSE(reader.ok()) << name << " byte " << i;
        ASSERT_NE(MessageOf(reader.status()).find(path), std::string::npos) << reader.status();
      }
      if (HasFatalFailure()) return;
      ++flips;
    }
    Spill(path, good);
  }
  EXPECT_GT(flips, 1500);
  EXPECT_TRUE(CheckpointReader::Open(folder_).ok());
}

TEST_F(DamageTest, CutsAndRemovedFiles) {
  for (const std::string& name : NamesIn(folder_)) {
    const std::string path = folder_ + "/" + name;
    const std::string good = Slurp(path);
    for (const int percent : {0, 1, 50, 99}) {
      Spill(path, good.substr(0, good.size() * static_cast<size_t>(percent) / 100));
      ExpectFallback(name, name + " cut to " + std::to_string(percent) + " %");
    }
    Spill(path, good + "x");
    ExpectFallback(name, name + " with a byte more");
    fs::remove(path);
    ExpectFallback(name, name + " removed");
    Spill(path, good);
  }
}

TEST_F(DamageTest, AnotherFormatVersion) {
  const std::string path = folder_ + "/" + kManifestName;
  std::string text = Slurp(path);
  for (const char* version : {"0", "2"}) {
    std::string other = text.substr(0, text.rfind("  \"manifest_xxh3\""));
    const std::string key = "\"version\": ";
    other.replace(other.find(key) + key.size(), 1, version);
    other += "  \"manifest_xxh3\": \"" + ChecksumText(Xxh3(other)) + "\"\n}\n";
    Spill(path, other);
    ExpectFallback(kManifestName, version);
    EXPECT_EQ(MessageOf(CheckpointReader::Open(folder_).status()),
              path + ": the checkpoint has format version " + version +
                  ", this program reads version 1; use the " +
                  (*version == '0' ? "older" : "newer") + " program");
  }
}

TEST_F(DamageTest, NothingSoundIsAnErrorAndNotANewStart) {
  for (const int64_t iteration : {1, 2}) {
    fs::remove(scratch_.File("checkpoints/" + CheckpointName(iteration) + "/state.json"));
  }
  const auto newest = OpenNewestCheckpoint(scratch_.path());
  EXPECT_EQ(newest.status().code(), absl::StatusCode::kDataLoss);
  const std::string message = MessageOf(newest.status());
  EXPECT_NE(message.find(CheckpointName(1) + "/state.json"), std::string::npos) << message;
  EXPECT_NE(message.find(CheckpointName(2) + "/state.json"), std::string::npos) << message;
}

TEST_F(DamageTest, DamagedOnesDoNotPushSoundOnesOut) {
  std::string bytes = Slurp(folder_ + "/weights.safetensors");
  bytes.back() ^= 1;
  Spill(folder_ + "/weights.safetensors", bytes);
  const auto store = StoreIn(scratch_.path(), 2);
  EXPECT_EQ(store->OpenNewest()->reader->iteration(), 1);
  SaveAt(*store, 3);
  EXPECT_TRUE(CheckpointReader::Open(scratch_.File("checkpoints/" + CheckpointName(1))).ok());
  SaveAt(*store, 2);
  EXPECT_EQ(store->OpenNewest()->reader->iteration(), 2);
  EXPECT_TRUE(store->OpenNewest()->passed_over.empty());
}

// Runs `body` in a child whose files may not grow beyond `bytes`: writes then fail as on a full
// disk. Gives the child's text.
std::string WithFileLimit(uint64_t bytes, const std::function<std::string()>& body) {
  int ends[2];
  CHECK(pipe(ends) == 0) << "pipe";
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0) << "setrlimit";
    const std::string text = body();
    CHECK(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size())) << "pipe";
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return text;
}

TEST(Faults, FullDiskLosesNothing) {
  const ScratchFolder scratch;
  SaveAt(*StoreIn(scratch.path()), 1, /*best=*/true);
  const std::vector<std::string> before = NamesIn(scratch.File("checkpoints"));
  // Fails in the first file, in the header, and in the manifest.
  for (const auto& [limit, size] :
       {std::pair<uint64_t, int64_t>{300000, 100000}, {1, 16}, {600, 16}}) {
    const std::string text = WithFileLimit(limit, [&scratch, size = size]() {
      const auto store = StoreIn(scratch.path());
      const auto saved = store->Save(StateOf(2), Tensors(2, size).groups());
      return std::to_string(static_cast<int>(saved.status().code())) + MessageOf(saved.status());
    });
    EXPECT_TRUE(text.starts_with("8")) << text;  // ResourceExhausted
    EXPECT_NE(text.find(scratch.File("checkpoints/" + CheckpointName(2)) + ", which needs " +
                        std::to_string(size * 32) + " bytes"),
              std::string::npos)
        << text;
    EXPECT_EQ(NamesIn(scratch.File("checkpoints")), before);
    EXPECT_EQ(OpenNewestCheckpoint(scratch.path())->reader->iteration(), 1);
  }
  SaveAt(*StoreIn(scratch.path()), 2);
}

TEST(Faults, AFolderThatCannotBeWritten) {
  const ScratchFolder scratch;
  SaveAt(*StoreIn(scratch.path()), 1);
  const auto store = StoreIn(scratch.path());
  // Works for root too, whom permissions do not stop: a file where the folder is due.
  fs::remove_all(scratch.File("checkpoints"));
  Spill(scratch.File("checkpoints"), "");
  const auto saved = store->Save(StateOf(2), Tensors(2).groups());
  EXPECT_NE(MessageOf(saved.status()).find(CheckpointName(2)), std::string::npos) << saved.status();
}

}  // namespace
}  // namespace capstan
