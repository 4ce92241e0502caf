#include "tests/faults/trainer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_reader.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kTrainer[] = "tools/trainer/trainer";  // below the runfiles

std::string NewFile() {
  std::string path = testing::TempDir() + "capstan_stream_XXXXXX";
  const int fd = mkstemp(path.data());
  CHECK(fd >= 0) << path;
  close(fd);
  return path;
}

void Limit(int resource, uint64_t value) {
  const rlimit limit{value, value};
  if (value > 0 && setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) _exit(126);
}

[[noreturn]] void Become(std::vector<char*> arguments, const ProcessOptions& options,
                         const std::string& output, const std::string& error) {
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(output.c_str(), O_WRONLY | O_APPEND);
  const int err = open(error.c_str(), O_WRONLY | O_APPEND);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
  for (const int fd : {in, out, err}) close(fd);
  if (options.output == "closed") close(1);
  Limit(RLIMIT_AS, options.address_space);
  Limit(RLIMIT_FSIZE, options.file_bytes);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

TrainerProcess::TrainerProcess(const std::vector<std::string>& arguments,
                               const ProcessOptions& options)
    : error_(NewFile()), start_(Clock::now()) {
  own_output_ = options.output.empty() || options.output == "closed";
  output_ = own_output_ ? NewFile() : options.output;
  std::vector<std::string> words = {fs::absolute(kTrainer)};
  CHECK(fs::exists(words[0])) << words[0] << ": run this by `bazel test`";
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  id_ = fork();
  CHECK(id_ >= 0) << "fork";
  if (id_ == 0) Become(pointers, options, output_, error_);
}

TrainerProcess::~TrainerProcess() {
  if (running()) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  if (own_output_) fs::remove(output_);
  fs::remove(error_);
}

double TrainerProcess::seconds() const {
  return std::chrono::duration<double>((ended_ ? end_ : Clock::now()) - start_).count();
}

bool TrainerProcess::running() {
  if (!ended_ && waitpid(id_, &wait_status_, WNOHANG) == id_) {
    ended_ = true;
    end_ = Clock::now();
  }
  return !ended_;
}

void TrainerProcess::Signal(int signal) {
  ASSERT_TRUE(running()) << "it ended before the signal: " << ReadAll(error_);
  kill(id_, signal);
}

std::string TrainerProcess::output() const { return ReadAll(output_); }

void TrainerProcess::WaitFor(const std::string& text) {
  const auto late = Clock::now() + std::chrono::seconds(20);
  while (output().find(text) == std::string::npos) {
    ASSERT_TRUE(running()) << "it ended before " << text << ": " << ReadAll(error_);
    ASSERT_LT(Clock::now(), late) << text << " did not come: " << output();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

Outcome TrainerProcess::Wait(double limit_s) {
  const auto late = Clock::now() + std::chrono::duration<double>(limit_s);
  while (running()) {
    if (Clock::now() > late) {
      ADD_FAILURE() << "still running after " << limit_s << " s: " << ReadAll(error_);
      kill(id_, SIGKILL);
      waitpid(id_, &wait_status_, 0);
      ended_ = true;
      end_ = Clock::now();
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Outcome outcome;
  outcome.status =
      WIFEXITED(wait_status_) ? WEXITSTATUS(wait_status_) : 128 + WTERMSIG(wait_status_);
  outcome.out = own_output_ ? ReadAll(output_) : "";
  outcome.err = ReadAll(error_);
  outcome.seconds = seconds();
  return outcome;
}

Outcome RunTrainer(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  return TrainerProcess(arguments, options).Wait();
}

void ExpectFailure(const Outcome& outcome, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, status) << outcome.err << outcome.out;
  EXPECT_LT(outcome.seconds, 10);
  EXPECT_TRUE(outcome.err.starts_with("trainer: ")) << outcome.err;
  for (const std::string& part : parts) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "no " << part << " in " << outcome.err;
  }
  // Its further lines are indented or items of a list: there is no second message.
  EXPECT_EQ(outcome.err.find("\ntrainer: "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find(outcome.err), std::string::npos) << "told twice: " << outcome.out;
  for (const char* dump : {"terminate called", "check failed", "what():", "Sanitizer", "    @ "}) {
    EXPECT_EQ(outcome.err.find(dump), std::string::npos) << outcome.err;
  }
}

TestFolder::TestFolder() : path_(testing::TempDir() + "capstan_faults_XXXXXX") {
  CHECK(mkdtemp(path_.data()) != nullptr) << path_;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TestFolder::Write(const std::string& name, const std::string& content) const {
  const std::string path = File(name);
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  CHECK(file.good()) << path;
  return path;
}

namespace {

constexpr char kModel[] =
    "version: 1\n"
    "model: {name: resnet18, classes: 4, stem: small, width: 2}\n"
    "loss: {name: cross_entropy}\n"
    "optimizer: {name: momentum, lr: {name: cosine, base: 0.02, warmup_iterations: 3}}\n";

std::string Synthetic(int64_t samples, int64_t first, int64_t image) {
  return fmt::format(
      "{{type: synthetic, classes: 4, samples: {}, first_sample: {}, shape: [3, {}, {}],\n"
      "    batch_size: 8, transforms: [ResizeImage: {{size: 8}}, NormalizeImage: {{}}],\n"
      "    loader: {{num_workers: 1}}}}\n",
      samples, first, image, image);
}

}  // namespace

std::string TestFolder::WriteJob(const JobOptions& o) const {
  return Write("job.yaml",
               std::string(kModel) +
                   "dataset:\n  train: " + Synthetic(8 * o.iterations_per_epoch, 0, o.image) +
                   "  eval: " + Synthetic(o.eval_samples, 1000000, o.image) +
                   fmt::format("train: {{max_iterations: {}}}\n"
                               "checkpoint: {{every_iterations: {}, keep: {}}}\n"
                               "log: {{every_iterations: 1}}\n"
                               "output_dir: {}\n{}",
                               o.iterations, o.save_every, o.keep, File("run"), o.more));
}

std::string TestFolder::WritePictureJob() const {
  const std::string pictures = "engine/data/testdata/";
  fs::create_directories(File("pictures"));
  std::string list;
  for (int i = 1; i <= 8; ++i) {
    const std::string name = fmt::format("exif{}.jpg", i);
    fs::copy_file(pictures + name, File("pictures/" + name));
    list += fmt::format("{} {}\n", name, i % 4);
  }
  for (const char* name : {"trunc_half_base.jpg", "red.jpg"}) {
    fs::copy_file(pictures + name, File(std::string("pictures/") + name));
  }
  Write("pictures/list.txt", list);
  const std::string set = fmt::format(
      "{{type: image_list, root: {}, list: list.txt, batch_size: 4, loader: {{num_workers: 1}},\n"
      "    transforms: [DecodeImage: {{}}, ResizeImage: {{size: 8}}, NormalizeImage: {{}}]}}\n",
      File("pictures"));
  return Write("job.yaml", fmt::format("{}dataset:\n  train: {}  eval: {}train: {{epochs: 1}}\n"
                                       "output_dir: {}\n",
                                       kModel, set, set, File("run")));
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Event> RunFiles::Events(const std::string& event) const {
  std::vector<Event> events;
  std::ifstream file(output_dir_ + "/metrics.jsonl");
  // What a killed run left of its last line ends without a line end.
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(json.is_object()) << line;
    if (!json.is_object() || json.value("event", "") != event) continue;
    Event& out = events.emplace_back(Event{.iteration = json.value("iteration", int64_t{0})});
    for (const char* key : {"epoch", "loss", "lr", "metrics", "samples", "status"}) {
      if (json.contains(key)) out.what += fmt::format("{} {} ", key, json[key].dump());
    }
  }
  return events;
}

int64_t RunFiles::Iteration() const {
  return nlohmann::json::parse(State()).value("iteration", int64_t{-1});
}

std::string RunFiles::State() const {
  auto json = nlohmann::json::parse(ReadAll(output_dir_ + "/checkpoints/latest/state.json"));
  json.erase("job");
  return json.dump();
}

std::vector<std::string> RunFiles::Leftovers() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(output_dir_)) {
    const std::string name = entry.path().filename();
    if (name != "checkpoints" && name != "job.yaml" && name != "train.log" &&
        name != "metrics.jsonl" && !name.starts_with("events.out.tfevents.")) {
      names.push_back(name);
    }
  }
  for (const auto& entry : fs::directory_iterator(CheckpointsFolder(output_dir_))) {
    const std::string name = entry.path().filename();
    if (name.starts_with('.') && name != ".lock") names.push_back(name);
  }
  return names;
}

std::string RunFiles::Tensors(int64_t iteration) const {
  const std::string folder = CheckpointsFolder(output_dir_) + "/" + CheckpointName(iteration);
  const std::string weights = ReadAll(folder + "/weights.safetensors");
  const std::string optimizer = ReadAll(folder + "/optimizer.safetensors");
  EXPECT_FALSE(weights.empty() || optimizer.empty()) << folder;
  return weights + optimizer;
}

void ExpectSameRun(const RunFiles& joined, const RunFiles& whole) {
  const std::vector<Event> lines = joined.Events("train"), want = whole.Events("train");
  ASSERT_EQ(lines.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(lines[i].iteration, i + 1);
    EXPECT_EQ(want[i].iteration, i + 1);
    EXPECT_EQ(lines[i].what, want[i].what) << "iteration " << i + 1;
  }
  EXPECT_TRUE(joined.Events("eval") == whole.Events("eval"));
  ASSERT_EQ(joined.Iteration(), whole.Iteration());
  EXPECT_TRUE(joined.Tensors(joined.Iteration()) == whole.Tensors(whole.Iteration()))
      << "weights or optimizer state differ";
}

}  // namespace capstan
