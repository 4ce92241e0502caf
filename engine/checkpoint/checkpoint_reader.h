// Reading checkpoints: one by its path, or the newest sound one of an output folder.
//
// A reader that opens has had every byte of its checkpoint verified against the manifest; tensors
// are read when asked for. Its files stay open, so a checkpoint that the keep limit removes
// meanwhile can be read to its end. Needs no lock: any number of processes may read while one
// writes. Readers are immutable: safe from any thread.
//
//   ASSIGN_OR_RETURN(NewestCheckpoint newest, OpenNewestCheckpoint("output/resnet50"));
//   if (newest.reader) RETURN_IF_ERROR(newest.reader->Read("weights", "fc.weight", tensor));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/training_state.h"

namespace capstan {

class CheckpointReader {
 public:
  // `path` is a checkpoint folder, or a link to one such as checkpoints/best. NotFound, or DataLoss
  // naming the damaged file.
  static absl::StatusOr<CheckpointReader> Open(const std::string& path);

  // The folder itself, even where a link was opened.
  const std::string& path() const { return path_; }
  int64_t iteration() const { return manifest_.iteration; }
  const TrainingState& state() const { return state_; }
  const Manifest& manifest() const { return manifest_; }

  std::vector<std::string> Groups() const;
  // Null when there is no such group.
  const TensorFiles* Group(std::string_view group) const;
  // The stored (row-major) type of a tensor, or null when there is none of that name.
  const TensorType* Find(std::string_view group, std::string_view name) const;
  // Fills `to`, whose dtype and shape must be the stored ones; its memory format is free.
  absl::Status Read(std::string_view group, std::string_view name, const TensorView& to) const;

 private:
  std::string path_;
  Manifest manifest_;
  TrainingState state_;
  std::vector<TensorFiles> groups_;  // as in the manifest
};

// One folder `iteration_*` of an output folder.
struct CheckpointInfo {
  std::string path;
  int64_t iteration = 0;
  absl::Status status;   // of the manifest and the file sizes; contents are not read
  int64_t sequence = 0;  // 0 where the manifest is unreadable
  uint64_t bytes = 0;
};

// Checkpoints of an output folder, newest save first; those whose manifest is unreadable come
// before all others, by iteration. An output folder without checkpoints gives none.
absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(const std::string& output_dir);

struct NewestCheckpoint {
  std::optional<CheckpointReader> reader;  // none: the folder holds no checkpoint at all
  // One message for each newer checkpoint that had to be passed over: which, why, what instead.
  std::vector<std::string> passed_over;
};

// DataLoss when there are checkpoints but none is sound: a run must not start over in silence.
absl::StatusOr<NewestCheckpoint> OpenNewestCheckpoint(const std::string& output_dir);

// "<output_dir>/checkpoints", "iteration_000001000".
std::string CheckpointsFolder(const std::string& output_dir);
std::string CheckpointName(int64_t iteration);
// The iteration of such a name; none for other names.
std::optional<int64_t> IterationOfName(std::string_view name);

}  // namespace capstan
