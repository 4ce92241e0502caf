// RunLog: what a run tells: train.log (text), metrics.jsonl (one JSON object a line), an event file
// of TensorBoard (events.out.tfevents.*, from the first figure on) and the terminal. On a terminal
// the latest training line is a progress bar that is drawn over; elsewhere every line stays.
//
// Lines are written whole and flushed one by one, so a killed run leaves at most a broken last
// line, which the next run removes. Numbers in metrics.jsonl read back to the same bits; NaN and
// infinity are the texts "nan", "inf" and "-inf". Where a log cannot be written (a full disk) the
// run is told once and goes on. One thread at a time.
//
//   ASSIGN_OR_RETURN(auto log, RunLog::Create({.output_dir = "output/digits"}));
//   log->Train({.iteration = 10, .loss = 2.3, ...});
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace capstan {

struct RunLogOptions {
  std::string output_dir;
  bool quiet = false;  // nothing to the terminal
  std::FILE* terminal = stdout;
};

struct TrainRecord {
  int64_t iteration = 0;  // finished updates
  int64_t total_iterations = 0;
  int64_t epoch = 0;  // being read, from 0
  int64_t total_epochs = 0;
  double loss = 0;
  double lr = 0;
  double samples_per_s = 0;
  double data_s = 0;  // since the record before
  double compute_s = 0;
  double comm_s = 0;
  double eta_s = 0;
};

struct EvalRecord {
  int64_t iteration = 0;
  int64_t epoch = 0;  // finished
  std::vector<std::pair<std::string, double>> metrics;
  int64_t samples = 0;
  double seconds = 0;
  bool best = false;
};

class RunLog {
 public:
  // Makes the folder and opens the files for appending.
  static absl::StatusOr<std::unique_ptr<RunLog>> Create(const RunLogOptions& options);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void Info(const std::string& text);
  void Warning(const std::string& text);
  void Train(const TrainRecord& record);
  void Eval(const EvalRecord& record);
  void Checkpoint(int64_t iteration, const std::string& path);
  // status: finished, stopped, diverged or failed.
  void End(const std::string& status, const std::string& reason);

  // Drops lines of metrics.jsonl that later iterations wrote, and a broken last line: for a run
  // that goes on from `iteration`; TensorBoard is told to drop later figures, too. Where its
  // evaluation is still to be done (again), that goes too.
  absl::Status TruncateAfter(int64_t iteration, bool evaluated = true);

 private:
  explicit RunLog(const RunLogOptions& options) : options_(options) {}

  absl::Status Open();
  void Write(std::FILE* file, const std::string& text);
  void WriteFailed();                                     // for the reason in errno
  void Text(const std::string& text);                     // to train.log
  void Show(const char* level, const std::string& text);  // to the terminal
  void Line(const char* level, const std::string& raw);   // to both
  void Json(const std::string& line);
  void Scalars(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  void OpenEvents();
  void ClearBar();
  void DrawBar(const std::string& bar);

  const RunLogOptions options_;
  bool is_terminal_ = false;
  bool bar_drawn_ = false;
  bool write_failed_ = false;
  std::FILE* text_ = nullptr;
  std::FILE* metrics_ = nullptr;
  std::FILE* events_ = nullptr;
  int64_t resumed_at_ = 0;
};

// "epoch 3/90  it 1200/112590  loss 2.31  lr 0.41  7021 samples/s  data 3% compute 92% comm 5% ..."
std::string FormatTrainLine(const TrainRecord& record, double resident_gib);

// The same behind a bar, in at most `width` columns: what matters least is left out first.
std::string FormatProgress(const TrainRecord& record, double resident_gib, size_t width);

// Memory of this process that is resident, and the most it ever was, in bytes.
int64_t ResidentBytes();
int64_t PeakResidentBytes();

}  // namespace capstan
