// Runs the real `trainer` binary on a job of its own, as a user does. One test program, one thread.
//
//   JobFolder job("labels");                         // an empty folder below the test's own
//   job.Write("train.txt", "a.png 0\n");
//   job.Write("job.yaml", job.Classification(3));
//   const Outcome out = job.Run("train");            // trainer train -c <folder>/job.yaml
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace capstan {

struct Outcome {
  int status = -1;     // exit status; -1 when a signal ended the process
  std::string output;  // standard output and standard error as they came
  double seconds = 0;
};

class JobFolder {
 public:
  explicit JobFolder(const std::string& name);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  void Write(const std::string& name, const std::string& bytes) const;
  // The text of a file of this folder; empty where there is none.
  std::string Read(const std::string& name) const;
  // Copies a picture of tests/cases/images into this folder under another name.
  void CopyPicture(const std::string& picture, const std::string& name) const;
  std::string Path(const std::string& name) const { return (root_ / name).string(); }

  // A job for a small network on pictures of 8x8 in this folder, listed in train.txt and val.txt.
  std::string Classification(int64_t classes) const;

  // `arguments` come after `trainer COMMAND -c <folder>/job.yaml`.
  Outcome Run(const std::string& command, const std::string& arguments = "") const;

 private:
  const std::filesystem::path root_;
};

}  // namespace capstan
