// What becomes of a job that was edited since its checkpoint was written: for every key that
// differs, what the checkpoint's job says, what the file says now, and which of the two holds.
//
//   const ResumeReport report = CompareForResume(before, job);
//   RETURN_IF_ERROR(report.Refusal(job));          // all keys that may not change, with their
//   places for (const std::string& line : report.Lines()) log->Info(line);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/config/job_spec.h"
#include "engine/config/render.h"

namespace capstan {

enum class ChangeEffect : uint8_t {
  kTakenOver,  // the file holds from here on
  kHarmless,   // the file holds and changes no number
  kNotUsed,    // the checkpoint holds
  kRefused,    // nothing can be resumed
};

struct JobChange {
  ChangedKey key;
  ChangeEffect effect = ChangeEffect::kTakenOver;
  std::string note;  // why, or what follows; may be empty
};

struct ResumeReport {
  std::vector<JobChange> changes;  // in the order of the job's keys
  // Whether evaluations before and after cannot be compared, so that the best so far is no measure.
  bool forgets_best = false;

  // "job changed: train.epochs: 2 -> 4 (taken over)", one for each change that is not refused.
  std::vector<std::string> Lines() const;
  // "2 taken over, 1 harmless"; empty without changes.
  std::string Summary() const;
  // InvalidArgument naming every refused key, where `job` has it, and the way out; or OK.
  absl::Status Refusal(const JobSpec& job) const;
  bool Changed(std::string_view path) const;
};

ResumeReport CompareForResume(const JobSpec& before, const JobSpec& now);

}  // namespace capstan
