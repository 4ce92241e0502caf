#include "engine/train/run_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/train/event_records.h"

namespace capstan {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const TrainRecord kRecord = {.iteration = 1200,
                             .total_iterations = 112590,
                             .epoch = 2,
                             .total_epochs = 90,
                             .loss = 2.31,
                             .lr = 0.41,
                             .samples_per_s = 7021.3,
                             .data_s = 0.3,
                             .compute_s = 9.2,
                             .comm_s = 0.5,
                             .eta_s = 11560};

class RunLogTest : public testing::Test {
 protected:
  RunLogTest() : folder_(testing::TempDir() + "/run_log") {
    std::filesystem::remove_all(folder_);
    terminal_ = std::tmpfile();
  }
  ~RunLogTest() override { std::fclose(terminal_); }

  std::unique_ptr<RunLog> Open() {
    auto log = RunLog::Create({.output_dir = folder_, .terminal = terminal_});
    CHECK_OK(log);
    return *std::move(log);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::vector<std::string> Lines(const std::string& name) const {
    std::ifstream file(Path(name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  // Every line must be one valid object.
  std::vector<json> Events() const {
    std::vector<json> events;
    for (const std::string& line : Lines("metrics.jsonl")) {
      events.push_back(json::parse(line, nullptr, false));
      EXPECT_TRUE(events.back().is_object()) << line;
    }
    return events;
  }

  std::vector<int64_t> Iterations() const {
    std::vector<int64_t> iterations;
    for (const json& event : Events()) iterations.push_back(event.value("iteration", int64_t{-1}));
    return iterations;
  }

  std::vector<std::string> EventFiles() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("events.out.tfevents.")) files.push_back(name);
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  // The message of a record: between 12 bytes of length and checksum, and 4 of its own checksum.
  static std::string Message(const std::string& record) {
    return record.substr(12, record.size() - 16);
  }

  std::vector<std::string> Records(const std::string& name) const {
    std::vector<std::string> messages;
    const std::string bytes = Read(name);
    for (size_t at = 0; at < bytes.size();) {
      uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof(length));
      messages.push_back(Message(bytes.substr(at, length + 16)));
      at += length + 16;
    }
    return messages;
  }

  std::string Terminal() const {
    std::string text(1 << 16, '\0');
    std::rewind(terminal_);
    text.resize(std::fread(text.data(), 1, text.size(), terminal_));
    return text;
  }

  const std::string folder_;
  std::FILE* terminal_;
};

TEST_F(RunLogTest, LineAsDocumented) {
  EXPECT_EQ(FormatTrainLine(kRecord, 11.24),
            "epoch 3/90  it 1200/112590  loss 2.31  lr 0.41  7021 samples/s  data 3% compute 92% "
            "comm 5%  mem 11.2 GiB  eta 3:12:40");
}

TEST_F(RunLogTest, SmallMemoryIsInMebibytes) {
  EXPECT_THAT(FormatTrainLine(kRecord, 0.0421), HasSubstr("  mem 43 MiB  "));
  EXPECT_THAT(FormatTrainLine(kRecord, 1), HasSubstr("  mem 1.0 GiB  "));
}

TEST_F(RunLogTest, EventsHaveTheirKeysInOrder) {
  auto log = Open();
  log->Train(kRecord);
  log->Eval({.iteration = 1200,
             .epoch = 3,
             .metrics = {{"top1", 0.5}, {"top5", 0.75}, {"loss", 1.25}},
             .samples = 40,
             .seconds = 2,
             .best = true});
  log->Checkpoint(1200, "out/checkpoints/iteration_000001200");
  log->End("finished", "");
  const auto lines = Lines("metrics.jsonl");
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[0], HasSubstr(R"({"event":"train","iteration":1200,"epoch":2,"loss":2.31,)"
                                  R"("lr":0.41,"samples_per_s":7021.3,"data_s":0.3,)"
                                  R"("compute_s":9.2,"comm_s":0.5,"mem_gib":)"));
  EXPECT_EQ(lines[1], R"({"event":"eval","iteration":1200,"epoch":3,)"
                      R"("metrics":{"top1":0.5,"top5":0.75,"loss":1.25},"samples":40})");
  EXPECT_EQ(lines[2], R"({"event":"checkpoint","iteration":1200,)"
                      R"("path":"out/checkpoints/iteration_000001200"})");
  EXPECT_EQ(lines[3], R"({"event":"end","status":"finished","reason":""})");
}

TEST_F(RunLogTest, NumbersReadBackToTheSameBits) {
  const double values[] = {static_cast<double>(2.3025851f), 0.1 + 0.2, 5e-324, 1e300, 1.0 / 3};
  auto log = Open();
  for (const double value : values) log->Train({.loss = value, .lr = -value});
  const auto events = Events();
  for (size_t i = 0; i < std::size(values); ++i) {
    EXPECT_EQ(events[i]["loss"].get<double>(), values[i]);
    EXPECT_EQ(events[i]["lr"].get<double>(), -values[i]);
  }
}

TEST_F(RunLogTest, NumbersThatAreNotFiniteAreTexts) {
  auto log = Open();
  log->Train({.loss = std::nan(""), .lr = std::numeric_limits<double>::infinity()});
  log->Eval({.metrics = {{"loss", -std::numeric_limits<double>::infinity()}}});
  EXPECT_EQ(Events()[0]["loss"], "nan");
  EXPECT_EQ(Events()[0]["lr"], "inf");
  EXPECT_EQ(Events()[1]["metrics"]["loss"], "-inf");
}

TEST_F(RunLogTest, BytesThatAreNoText) {
  auto log = Open();
  log->Checkpoint(1, "a\xff/\xe5\x8c\x97");
  log->End("failed", "b\xff\x1b[2J");
  log->Warning("skipped x\x1b[2J.jpg\nsecond line\n");
  EXPECT_EQ(Events()[0]["path"], "a\xef\xbf\xbd/\xe5\x8c\x97");
  EXPECT_THAT(Read("train.log"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Terminal(), HasSubstr("warning: skipped x?[2J.jpg\n    second line\n"));
}

TEST_F(RunLogTest, PlainLinesWhereThereIsNoTerminal) {
  auto log = Open();
  log->Info("hello");
  log->Train(kRecord);
  log->Warning("careful");
  log->End("finished", "");
  const std::string text = Terminal();
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("hello\nepoch 3/90  it 1200/112590"));
  EXPECT_THAT(text, EndsWith("\nwarning: careful\nfinished\n"));
  const auto lines = Lines("train.log");
  ASSERT_THAT(lines, SizeIs(4));
  for (const std::string& line : lines) {
    EXPECT_THAT(line, testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+ .*"));
  }
}

TEST_F(RunLogTest, ANewRunAppends) {
  Open()->Info("first");
  Open()->Info("second");
  EXPECT_THAT(Read("train.log"), HasSubstr("first\n"));
  EXPECT_THAT(Read("train.log"), EndsWith("second\n"));
}

TEST_F(RunLogTest, ABrokenLastLineIsDropped) {
  Open()->Train({.iteration = 10});
  for (const char* broken : {"{\"event\":\"tra", "x"}) {
    std::ofstream(Path("metrics.jsonl"), std::ios::app) << broken;
    std::ofstream(Path("train.log"), std::ios::app) << broken;
    Open()->Train({.iteration = 20});
  }
  EXPECT_THAT(Iterations(), ElementsAre(10, 20, 20));
  EXPECT_THAT(Lines("train.log"), SizeIs(3));
  // A first line that never ended.
  std::ofstream(Path("metrics.jsonl")) << "{\"ev";
  Open();
  EXPECT_EQ(Read("metrics.jsonl"), "");
}

TEST_F(RunLogTest, ResumingDropsWhatLaterIterationsWrote) {
  Open()->End("stopped", "");
  auto log = Open();
  for (const int64_t i : {10, 20, 30}) {
    log->Train({.iteration = i});
    log->Eval({.iteration = i});
    log->Checkpoint(i, "c");
  }
  ASSERT_TRUE(log->TruncateAfter(20).ok());
  EXPECT_THAT(Iterations(), ElementsAre(-1, 10, 10, 10, 20, 20, 20));
  // The same log writes on, behind what was kept.
  log->Train({.iteration = 30});
  EXPECT_THAT(Iterations(), ElementsAre(-1, 10, 10, 10, 20, 20, 20, 30));
  ASSERT_TRUE(log->TruncateAfter(0).ok());
  EXPECT_THAT(Iterations(), ElementsAre(-1));
  EXPECT_FALSE(std::filesystem::exists(Path("metrics.jsonl.tmp")));
}

TEST_F(RunLogTest, AnEvaluationThatIsToBeDoneAgainGoes) {
  auto log = Open();
  log->Train({.iteration = 10});
  log->Eval({.iteration = 10});
  log->Checkpoint(10, "c");
  ASSERT_TRUE(log->TruncateAfter(10, /*evaluated=*/false).ok());
  EXPECT_THAT(Iterations(), ElementsAre(10, 10));
  EXPECT_THAT(Read("metrics.jsonl"), Not(HasSubstr("eval")));
}

// One file a run, from its first figure on; the start record has the first iteration to come.
TEST_F(RunLogTest, EventFilesOfTensorBoard) {
  Open()->Info("no figure");
  EXPECT_THAT(EventFiles(), SizeIs(0));
  auto log = Open();
  ASSERT_TRUE(log->TruncateAfter(20).ok());
  log->Train({.iteration = 30, .loss = 0.5, .lr = 0.125});
  log->Eval({.iteration = 30, .metrics = {{"top1", 0.75}}});
  Open()->Train({.iteration = 30});
  ASSERT_THAT(EventFiles(), SizeIs(2));
  const std::vector<std::string> records = Records(EventFiles()[0]);
  ASSERT_THAT(records, SizeIs(4));
  EXPECT_THAT(records[0], EndsWith("brain.Event:2"));
  // Without the times, which are 9 bytes: what ScalarsRecord gives for the same figures.
  EXPECT_EQ(records[1].substr(9), Message(StartRecord(0, 21)).substr(9));
  EXPECT_THAT(
      records[2],
      HasSubstr(
          Message(ScalarsRecord(0, 30, {{"train/loss", 0.5}, {"train/lr", 0.125}})).substr(13)));
  EXPECT_EQ(records[3].substr(9), Message(ScalarsRecord(0, 30, {{"eval/top1", 0.75}})).substr(9));
  EXPECT_EQ(Records(EventFiles()[1])[1].substr(9), Message(StartRecord(0, 1)).substr(9));
}

TEST_F(RunLogTest, NothingToDropLeavesTheFileAlone) {
  auto log = Open();
  log->Train({.iteration = 10});
  const std::string before = Read("metrics.jsonl");
  ASSERT_TRUE(log->TruncateAfter(10).ok());
  EXPECT_EQ(Read("metrics.jsonl"), before);
}

TEST_F(RunLogTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_) << "a file";
  const auto log = RunLog::Create({.output_dir = folder_ + "/run"});
  EXPECT_THAT(MessageOf(log.status()), HasSubstr(folder_));
}

// /dev/full refuses every byte, as a full disk does.
TEST_F(RunLogTest, AFullDiskIsToldOnceAndEndsNothing) {
  std::filesystem::create_directories(folder_);
  for (const char* name : {"train.log", "metrics.jsonl"}) {
    std::filesystem::create_symlink("/dev/full", Path(name));
  }
  auto log = Open();
  for (int i = 0; i < 3; ++i) log->Train(kRecord);
  log->Info("still here");
  const std::string text = Terminal();
  const size_t first = text.find("No space left on device");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("No space left on device", first + 1), std::string::npos);
  EXPECT_THAT(text, EndsWith("still here\n"));
}

TEST(Progress, FitsItsWidth) {
  const std::string whole = FormatProgress(kRecord, 11.24, 500);
  EXPECT_EQ(whole, "[            ] " + FormatTrainLine(kRecord, 11.24));
  for (size_t width = 0; width < 200; ++width) {
    const std::string line = FormatProgress(kRecord, 11.24, width);
    EXPECT_LE(line.size(), width);
    if (width >= 40) {
      EXPECT_THAT(line, HasSubstr("loss 2.31  "));
    }
    if (width >= 40) {
      EXPECT_THAT(line, EndsWith("eta 3:12:40"));
    }
  }
  EXPECT_EQ(FormatProgress(kRecord, 11.24, 79),
            "[            ] it 1200/112590  loss 2.31  7021 samples/s  eta 3:12:40");
  EXPECT_THAT(FormatProgress(kRecord, 11.24, 100), HasSubstr("data 3% compute 92% comm 5%"));
}

TEST(Progress, BarGrows) {
  TrainRecord r = kRecord;
  r.total_iterations = 2400;
  EXPECT_THAT(FormatProgress(r, 1, 200), HasSubstr("[======      ] "));
  r.iteration = 2400;
  EXPECT_THAT(FormatProgress(r, 1, 200), HasSubstr("[============] "));
}

TEST(Progress, DrawnOverOnATerminal) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) GTEST_SKIP() << "no terminals";
  std::FILE* terminal = std::fopen(ptsname(master), "r+");
  if (terminal == nullptr) GTEST_SKIP() << "no terminals";
  const winsize size{.ws_row = 24, .ws_col = 60};
  ASSERT_EQ(ioctl(master, TIOCSWINSZ, &size), 0);
  {
    auto log =
        RunLog::Create({.output_dir = testing::TempDir() + "/tty_log", .terminal = terminal});
    ASSERT_TRUE(log.ok()) << log.status();
    (*log)->Train(kRecord);
    (*log)->Train(kRecord);
    (*log)->Warning("careful");
    (*log)->End("finished", "");
  }
  const std::string bar = "\r" + FormatProgress(kRecord, 0, 59) + "\x1b[K";
  const std::string want = bar + bar + "\r\x1b[K\x1b[33mwarning: careful\x1b[0m\r\nfinished\r\n";
  std::string text;
  // A terminal may hand out each write on its own.
  while (text.size() < want.size()) {
    char bytes[4096];
    pollfd ready{.fd = master, .events = POLLIN};
    if (poll(&ready, 1, 5000) != 1) break;
    const ssize_t count = read(master, bytes, sizeof(bytes));
    if (count <= 0) break;
    text.append(bytes, static_cast<size_t>(count));
  }
  EXPECT_EQ(text, want);
  std::fclose(terminal);
  close(master);
}

TEST(Memory, ResidentIsPositiveAndNoMoreThanThePeak) {
  EXPECT_GT(ResidentBytes(), 1 << 20);
  EXPECT_GE(PeakResidentBytes(), ResidentBytes());
}

}  // namespace
}  // namespace capstan
