#include "engine/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

constexpr char kLatest[] = "latest";
constexpr char kBest[] = "best";
constexpr char kLockName[] = ".lock";
// Hidden names: no reader takes them for a checkpoint, and Create removes what is left of them.
constexpr std::string_view kSaving = ".saving_";
constexpr std::string_view kReplaced = ".replaced_";
constexpr std::string_view kRemoving = ".removing_";
constexpr std::string_view kPointing = ".pointing_";

std::string Hidden(std::string_view prefix, const std::string& name) {
  return std::string(prefix) + name;
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return WriteError(errno, "rename " + from + " to " + to);
}

absl::StatusOr<FileHandle> TakeLock(const std::string& folder) {
  const std::string path = folder + "/" + kLockName;
  FileHandle lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.valid()) return WriteError(errno, "open " + path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock " + path);
    char holder[64] = "";
    const ssize_t n = pread(lock.get(), holder, sizeof(holder) - 1, 0);
    const std::string_view who = Trim({holder, static_cast<size_t>(std::max<ssize_t>(n, 0))});
    return FailedPrecondition(
        "{} is in use by {}; wait until that job ends, or give this one another output_dir", folder,
        who.empty() ? "another process" : who);
  }
  // Only for the message above: the lock itself is the kernel's and dies with its process.
  const std::string text = fmt::format("process {}\n", getpid());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    // A full disk: the lock holds without its text.
  }
  return lock;
}

absl::Status CheckGroups(const std::vector<TensorGroup>& groups) {
  std::set<std::string> names;
  for (const TensorGroup& group : groups) {
    const bool plain = std::all_of(group.name.begin(), group.name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (group.name.empty() || !plain) {
      return InvalidArgument("tensor group {}: its name may have a-z, 0-9 and _ only",
                             Quote(group.name));
    }
    if (!names.insert(group.name).second) {
      return InvalidArgument("two tensor groups named {}", Quote(group.name));
    }
    std::set<std::string_view> tensors;
    for (const NamedTensor& t : group.tensors) {
      if (!tensors.insert(t.name).second) {
        return InvalidArgument("two tensors named {} in group {}", Quote(t.name), group.name);
      }
    }
  }
  return absl::OkStatus();
}

int64_t BytesOf(const std::vector<TensorGroup>& groups) {
  int64_t bytes = 0;
  for (const TensorGroup& group : groups) {
    for (const NamedTensor& t : group.tensors) bytes += t.tensor.type.bytes();
  }
  return bytes;
}

absl::Status WriteTextFile(const std::string& folder, const std::string& name,
                           const std::string& text, Manifest* manifest) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(folder + "/" + name));
  RETURN_IF_ERROR(file.Write(text));
  ASSIGN_OR_RETURN(const FileSummary summary, file.Finish());
  if (manifest != nullptr) manifest->files.push_back({name, summary});
  return absl::OkStatus();
}

}  // namespace

CheckpointStore::CheckpointStore(const CheckpointStoreOptions& options, FileHandle lock)
    : options_(options), folder_(CheckpointsFolder(options.output_dir)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<CheckpointStore>> CheckpointStore::Create(
    const CheckpointStoreOptions& options) {
  if (options.output_dir.empty()) return InvalidArgument("output_dir is empty");
  if (options.keep < 1) {
    return InvalidArgument("checkpoint.keep is {}; it must be at least 1", options.keep);
  }
  const std::string folder = CheckpointsFolder(options.output_dir);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return WriteError(error.value(), "create folder " + folder);
  ASSIGN_OR_RETURN(FileHandle lock, TakeLock(folder));
  std::unique_ptr<CheckpointStore> store(new CheckpointStore(options, std::move(lock)));
  RETURN_IF_ERROR(store->CleanUp());
  RETURN_IF_ERROR(store->MendPointers());
  return store;
}

absl::Status CheckpointStore::CleanUp() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder_));
  for (const std::string& name : names) {
    if (name.starts_with(kReplaced)) {
      const std::string original = name.substr(kReplaced.size());
      // Killed between the two renames of Publish: the old one is the only one.
      if (!NameExists(Path(original))) {
        RETURN_IF_ERROR(Rename(Path(name), Path(original)));
        notes_.push_back(fmt::format("{}: restored after an interrupted save", Path(original)));
        continue;
      }
    }
    const bool leftover = name.starts_with(kSaving) || name.starts_with(kReplaced) ||
                          name.starts_with(kRemoving) || name.starts_with(kPointing);
    if (!leftover) continue;
    RETURN_IF_ERROR(RemoveTree(Path(name)));
    if (name.starts_with(kSaving)) {
      notes_.push_back(fmt::format("{}: removed what an interrupted save left", Path(name)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::MendPointers() {
  ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> all, ListCheckpoints(options_.output_dir));
  const CheckpointInfo* newest = nullptr;
  for (const CheckpointInfo& info : all) {
    next_sequence_ = std::max(next_sequence_, info.sequence + 1);
    if (newest == nullptr && info.status.ok()) newest = &info;
  }
  bool changed = false;
  for (const char* pointer : {kLatest, kBest}) {
    // Dangling: its checkpoint was removed by hand.
    if (NameExists(Path(pointer)) && access(Path(pointer).c_str(), F_OK) != 0) {
      RETURN_IF_ERROR(RemoveTree(Path(pointer)));
      notes_.push_back(fmt::format("{}: removed, it pointed to nothing", Path(pointer)));
      changed = true;
    }
  }
  if (newest != nullptr) {
    // A save was killed after its folder appeared and before its pointers moved.
    const std::string name = CheckpointName(newest->iteration);
    if (TargetOf(kLatest) != name) {
      RETURN_IF_ERROR(PointTo(kLatest, name));
      notes_.push_back(fmt::format("{}: now points to {}", Path(kLatest), name));
      changed = true;
    }
    const absl::StatusOr<std::string> text =
        ReadWholeFile(newest->path + "/" + kStateName, uint64_t{1} << 30);
    if (text.ok()) {
      const absl::StatusOr<TrainingState> state = StateFromJson(*text);
      if (state.ok() && state->best_iteration == newest->iteration && TargetOf(kBest) != name) {
        RETURN_IF_ERROR(PointTo(kBest, name));
        notes_.push_back(fmt::format("{}: now points to {}", Path(kBest), name));
        changed = true;
      }
    }
  }
  return changed ? SyncFolder(folder_) : absl::OkStatus();
}

absl::StatusOr<SavedCheckpoint> CheckpointStore::Save(const TrainingState& state,
                                                      const std::vector<TensorGroup>& groups) {
  if (state.iteration < 0) return InvalidArgument("iteration {} is negative", state.iteration);
  RETURN_IF_ERROR(CheckGroups(groups));
  const std::string name = CheckpointName(state.iteration);
  const std::string building = Path(Hidden(kSaving, name));
  absl::StatusOr<Manifest> manifest = WriteFolder(building, state, groups);
  absl::Status status = manifest.status();
  if (status.ok()) status = Publish(building, name);
  if (!status.ok()) {
    const uint64_t free_before_removal = FreeBytes(folder_);
    const absl::Status removed = RemoveTree(building);
    const int64_t needed = BytesOf(groups);
    return Annotate(status,
                    "while saving checkpoint {}, which needs {} bytes ({}; {} were left on the "
                    "disk); earlier checkpoints are as they were{}",
                    Path(name), needed, HumanBytes(static_cast<double>(needed)),
                    HumanBytes(static_cast<double>(free_before_removal)),
                    removed.ok() ? "" : "; " + MessageOf(removed));
  }

  SavedCheckpoint saved;
  saved.path = Path(name);
  saved.bytes = manifest->TotalBytes();
  saved.best = state.best_iteration == state.iteration;
  damaged_.erase(name);
  next_sequence_ = manifest->sequence + 1;
  RETURN_IF_ERROR(PointTo(kLatest, name), "after saving {}, which is complete", saved.path);
  if (saved.best) {
    RETURN_IF_ERROR(PointTo(kBest, name), "after saving {}, which is complete", saved.path);
  }
  ASSIGN_OR_RETURN(saved.removed, RemoveOld(name), "after saving {}, which is complete",
                   saved.path);
  return saved;
}

absl::StatusOr<Manifest> CheckpointStore::WriteFolder(
    const std::string& folder, const TrainingState& state,
    const std::vector<TensorGroup>& groups) const {
  RETURN_IF_ERROR(RemoveTree(folder));
  if (mkdir(folder.c_str(), 0777) != 0) return WriteError(errno, "create folder " + folder);
  Manifest manifest{.iteration = state.iteration, .sequence = next_sequence_};
  for (const TensorGroup& group : groups) RETURN_IF_ERROR(WriteGroup(folder, group, &manifest));
  ASSIGN_OR_RETURN(const std::string text, StateToJson(state));
  RETURN_IF_ERROR(WriteTextFile(folder, kStateName, text, &manifest));
  RETURN_IF_ERROR(WriteTextFile(folder, kManifestName, ManifestToJson(manifest), nullptr));
  RETURN_IF_ERROR(SyncFolder(folder));
  return manifest;
}

absl::Status CheckpointStore::WriteGroup(const std::string& folder, const TensorGroup& group,
                                         Manifest* manifest) const {
  std::vector<std::vector<NamedTensor>> parts(1);
  uint64_t part_bytes = 0, total_bytes = 0;
  for (const NamedTensor& t : group.tensors) {
    const auto bytes = static_cast<uint64_t>(t.tensor.type.bytes());
    if (!parts.back().empty() && part_bytes + bytes > options_.max_file_bytes) {
      parts.emplace_back();
      part_bytes = 0;
    }
    parts.back().push_back(t);
    part_bytes += bytes;
    total_bytes += bytes;
  }

  Manifest::Group listed{.name = group.name};
  std::string weight_map;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = parts.size() == 1 ? group.name + ".safetensors"
                                               : fmt::format("{}-{:05d}-of-{:05d}.safetensors",
                                                             group.name, i + 1, parts.size());
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(folder + "/" + name));
    RETURN_IF_ERROR(WriteSafetensorsTo(file, parts[i], {{"format", "pt"}}));
    ASSIGN_OR_RETURN(const FileSummary summary, file.Finish());
    manifest->files.push_back({name, summary});
    listed.files.push_back(name);
    for (const NamedTensor& t : parts[i]) {
      weight_map +=
          fmt::format("{}\n    {}: {}", weight_map.empty() ? "" : ",", Quote(t.name), Quote(name));
    }
  }
  manifest->groups.push_back(std::move(listed));
  if (parts.size() == 1) return absl::OkStatus();
  return WriteTextFile(
      folder, group.name + ".safetensors.index.json",
      fmt::format("{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{{}\n  }}\n}}\n",
                  total_bytes, weight_map),
      manifest);
}

absl::Status CheckpointStore::Publish(const std::string& built, const std::string& name) const {
  const std::string path = Path(name);
  if (!NameExists(path)) {
    RETURN_IF_ERROR(Rename(built, path));
    return SyncFolder(folder_);
  }
  // One step where the file system can; then the old one lies under the name of the new one.
  if (renameat2(AT_FDCWD, built.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    RETURN_IF_ERROR(SyncFolder(folder_));
    return RemoveTree(built);
  }
  const std::string aside = Path(Hidden(kReplaced, name));
  RETURN_IF_ERROR(RemoveTree(aside));
  RETURN_IF_ERROR(Rename(path, aside));
  if (const absl::Status status = Rename(built, path); !status.ok()) {
    const absl::Status restored = Rename(aside, path);
    return restored.ok() ? status : Annotate(status, "and {}", MessageOf(restored));
  }
  RETURN_IF_ERROR(SyncFolder(folder_));
  return RemoveTree(aside);
}

absl::Status CheckpointStore::PointTo(const std::string& pointer, const std::string& name) const {
  const std::string link = Path(Hidden(kPointing, pointer));
  RETURN_IF_ERROR(RemoveTree(link));
  if (symlink(name.c_str(), link.c_str()) != 0) return WriteError(errno, "link " + link);
  return Rename(link, Path(pointer));
}

std::string CheckpointStore::TargetOf(const std::string& pointer) const {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(Path(pointer), error);
  return error ? "" : target.string();
}

absl::Status CheckpointStore::MarkBest(int64_t iteration) {
  const std::string name = CheckpointName(iteration);
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(Path(name)), "while marking it the best");
  RETURN_IF_ERROR(CheckFileSizes(Path(name), manifest), "while marking it the best");
  RETURN_IF_ERROR(PointTo(kBest, name));
  return SyncFolder(folder_);
}

absl::StatusOr<NewestCheckpoint> CheckpointStore::OpenNewest() {
  ASSIGN_OR_RETURN(NewestCheckpoint newest, OpenNewestCheckpoint(options_.output_dir));
  if (newest.passed_over.empty()) return newest;
  ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> all, ListCheckpoints(options_.output_dir));
  for (const CheckpointInfo& info : all) {
    if (info.path == newest.reader->path()) break;
    damaged_.insert(CheckpointName(info.iteration));
  }
  return newest;
}

absl::StatusOr<std::vector<std::string>> CheckpointStore::RemoveOld(
    const std::string& just_written) {
  ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> all, ListCheckpoints(options_.output_dir));
  const std::string best = TargetOf(kBest);
  std::vector<std::string> removed, hidden;
  int64_t sound = 0;
  for (const CheckpointInfo& info : all) {
    const std::string name = CheckpointName(info.iteration);
    // What is damaged is left for a person to look at; counting it could cost a sound one.
    if (!info.status.ok() || damaged_.contains(name)) continue;
    if (++sound <= options_.keep || name == best || name == just_written) continue;
    // Hidden first: a kill while its files go must not leave half a checkpoint under its name.
    hidden.push_back(Path(Hidden(kRemoving, name)));
    RETURN_IF_ERROR(Rename(info.path, hidden.back()));
    removed.push_back(info.path);
  }
  // Before any file goes: after a power cut the pointers must not be the old ones.
  RETURN_IF_ERROR(SyncFolder(folder_));
  for (const std::string& path : hidden) RETURN_IF_ERROR(RemoveTree(path));
  return removed;
}

}  // namespace capstan
