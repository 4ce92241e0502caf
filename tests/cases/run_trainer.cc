#include "tests/cases/run_trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/base/check.h"

namespace capstan {

namespace fs = std::filesystem;

JobFolder::JobFolder(const std::string& name)
    : root_(fs::absolute(fs::path(testing::TempDir()) / name)) {
  fs::remove_all(root_);
  fs::create_directories(root_);
}

JobFolder::~JobFolder() { fs::remove_all(root_); }

void JobFolder::Write(const std::string& name, const std::string& bytes) const {
  fs::create_directories((root_ / name).parent_path());
  std::ofstream file(root_ / name, std::ios::binary);
  file << bytes;
  CHECK(file.good()) << "cannot write " << name;
}

std::string JobFolder::Read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(root_ / name, std::ios::binary).rdbuf();
  return text.str();
}

void JobFolder::CopyPicture(const std::string& picture, const std::string& name) const {
  fs::create_directories((root_ / name).parent_path());
  fs::copy_file(fs::path("tests/cases/images") / picture, root_ / name,
                fs::copy_options::overwrite_existing);
}

std::string JobFolder::Classification(int64_t classes) const {
  return fmt::format(R"(version: 1
model: {{name: resnet18, classes: {1}, stem: small, width: 4}}
dataset:
  train:
    type: image_list
    root: {0}
    list: train.txt
    batch_size: 2
    transforms:
      - DecodeImage: {{}}
      - ResizeImage: {{size: 8}}
      - NormalizeImage: {{}}
  eval:
    type: image_list
    root: {0}
    list: val.txt
    batch_size: 2
    transforms:
      - DecodeImage: {{}}
      - ResizeImage: {{size: 8}}
      - NormalizeImage: {{}}
loss: {{name: cross_entropy}}
optimizer: {{name: sgd, lr: 0.01}}
train: {{epochs: 1}}
output_dir: {0}/output
device: cpu
)",
                     root_.string(), classes);
}

Outcome JobFolder::Run(const std::string& command, const std::string& arguments) const {
  const std::string line =
      fmt::format("tools/trainer/trainer {} -c '{}' {} 2>&1", command, Path("job.yaml"), arguments);
  const auto start = std::chrono::steady_clock::now();
  FILE* pipe = popen(line.c_str(), "r");
  CHECK(pipe != nullptr) << line;
  Outcome outcome;
  std::array<char, 4096> part;
  while (const size_t n = std::fread(part.data(), 1, part.size(), pipe)) {
    outcome.output.append(part.data(), n);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace capstan
