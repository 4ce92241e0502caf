// Saving the checkpoints of one output folder (docs/checkpoint-format.md gives the layout).
//
// Invariant: at any instant, whatever is killed or full, every folder `checkpoints/iteration_*` is
// complete, and `latest` and `best` point to such a folder or do not exist. A save builds a hidden
// folder, syncs it, renames it, then moves the pointers, then removes what `keep` no longer covers.
// One store a folder: a lock, held while the store lives, refuses a second one. A store belongs to
// one thread; readers (checkpoint_reader.h) need no lock.
//
//   ASSIGN_OR_RETURN(auto store, CheckpointStore::Create({.output_dir = "output/resnet50"}));
//   ASSIGN_OR_RETURN(NewestCheckpoint newest, store->OpenNewest());
//   ...
//   ASSIGN_OR_RETURN(SavedCheckpoint saved, store->Save(state, {{"weights", weights}}));
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/file_io.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/training_state.h"

namespace capstan {

struct CheckpointStoreOptions {
  std::string output_dir;
  // The newest ones that are kept, at least 1; the best one is kept in addition.
  int64_t keep = 3;
  // A group with more bytes is split into several files with an index; a tensor is never split.
  uint64_t max_file_bytes = uint64_t{4} << 30;
};

// Tensors that belong together, by logical name: "weights", "optimizer".
struct TensorGroup {
  std::string name;  // letters a-z, digits and '_'
  std::vector<NamedTensor> tensors;
};

struct SavedCheckpoint {
  std::string path;
  uint64_t bytes = 0;
  bool best = false;
  std::vector<std::string> removed;  // paths of the checkpoints that `keep` gave up
};

class CheckpointStore {
 public:
  // Makes the folders, takes the lock, removes what a killed save left, mends pointers.
  // FailedPrecondition when another process (or store) uses the folder.
  static absl::StatusOr<std::unique_ptr<CheckpointStore>> Create(
      const CheckpointStoreOptions& options);
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  // What Create removed or mended, for the log.
  const std::vector<std::string>& notes() const { return notes_; }

  // Saves `state` and `groups` as the checkpoint of state.iteration; it replaces an older one of
  // that iteration. It becomes `latest`, and `best` where state.best_iteration is state.iteration.
  // On an error nothing is lost: what was there before is still there, and no part of the new one
  // remains. ResourceExhausted (disk full) names the path and the bytes needed.
  absl::StatusOr<SavedCheckpoint> Save(const TrainingState& state,
                                       const std::vector<TensorGroup>& groups);

  // Makes a saved checkpoint the best one: for an evaluation that comes after the save.
  absl::Status MarkBest(int64_t iteration);

  // As OpenNewestCheckpoint. Checkpoints found damaged no longer count for `keep`.
  absl::StatusOr<NewestCheckpoint> OpenNewest();

 private:
  CheckpointStore(const CheckpointStoreOptions& options, FileHandle lock);

  absl::Status CleanUp();
  absl::Status MendPointers();
  absl::StatusOr<Manifest> WriteFolder(const std::string& folder, const TrainingState& state,
                                       const std::vector<TensorGroup>& groups) const;
  absl::Status WriteGroup(const std::string& folder, const TensorGroup& group,
                          Manifest* manifest) const;
  // Renames `built` to `name`, where an older folder of that name may be in the way.
  absl::Status Publish(const std::string& built, const std::string& name) const;
  absl::Status PointTo(const std::string& pointer, const std::string& name) const;
  // The name that a pointer holds, "" for none.
  std::string TargetOf(const std::string& pointer) const;
  absl::StatusOr<std::vector<std::string>> RemoveOld(const std::string& just_written);
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  CheckpointStoreOptions options_;
  std::string folder_;  // <output_dir>/checkpoints
  FileHandle lock_;
  int64_t next_sequence_ = 1;
  std::set<std::string> damaged_;  // names
  std::vector<std::string> notes_;
};

}  // namespace capstan
