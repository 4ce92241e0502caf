#include "engine/checkpoint/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

constexpr std::string_view kNamePrefix = "iteration_";
constexpr uint64_t kMaxStateBytes = uint64_t{1} << 30;

CheckpointInfo Inspect(const std::string& path, int64_t iteration) {
  CheckpointInfo info{.path = path, .iteration = iteration};
  const absl::StatusOr<Manifest> manifest = ReadManifest(path);
  info.status = manifest.status();
  if (!manifest.ok()) return info;
  info.sequence = manifest->sequence;
  info.bytes = manifest->TotalBytes();
  info.status = CheckFileSizes(path, *manifest);
  if (info.status.ok() && manifest->iteration != iteration) {
    info.status = DataLoss("{}/{}: it is the manifest of iteration {}; the folder was renamed",
                           path, kManifestName, manifest->iteration);
  }
  return info;
}

}  // namespace

std::string CheckpointsFolder(const std::string& output_dir) {
  return output_dir.ends_with('/') ? output_dir + "checkpoints" : output_dir + "/checkpoints";
}

std::string CheckpointName(int64_t iteration) {
  return fmt::format("{}{:09d}", kNamePrefix, iteration);
}

std::optional<int64_t> IterationOfName(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kNamePrefix.size());
  int64_t iteration = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), iteration);
  if (error != std::errc() || end != digits.data() + digits.size() || iteration < 0 ||
      CheckpointName(iteration) != name) {
    return std::nullopt;
  }
  return iteration;
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& path) {
  // Once: a running job may move the pointer while the files are opened.
  const std::string folder = FollowLink(path);
  CheckpointReader reader;
  reader.path_ = folder;
  ASSIGN_OR_RETURN(reader.manifest_, ReadManifest(folder));
  const Manifest& manifest = reader.manifest_;
  // Opened before they are verified: what is verified is then what will be read.
  for (const Manifest::Group& group : manifest.groups) {
    std::vector<std::string> paths;
    for (const std::string& name : group.files) {
      const auto listed = [&name](const Manifest::File& file) { return file.name == name; };
      if (std::none_of(manifest.files.begin(), manifest.files.end(), listed)) {
        return DataLoss("{}/{}: group {} has the file {}, which is not listed", folder,
                        kManifestName, Quote(group.name), Quote(name));
      }
      paths.push_back(folder + "/" + name);
    }
    absl::StatusOr<TensorFiles> files = TensorFiles::OpenAll(paths);
    if (!files.ok()) {
      // A size or checksum says more about damage than the header that it broke.
      RETURN_IF_ERROR(CheckFileContents(folder, manifest));
      return files.status();
    }
    reader.groups_.push_back(*std::move(files));
  }
  RETURN_IF_ERROR(CheckFileContents(folder, manifest));
  const std::string state_path = folder + "/" + kStateName;
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(state_path, kMaxStateBytes));
  ASSIGN_OR_RETURN(reader.state_, StateFromJson(text), "while reading {}", state_path);
  if (reader.state_.iteration != manifest.iteration) {
    return DataLoss("{}: it is of iteration {}, the manifest of iteration {}", state_path,
                    reader.state_.iteration, manifest.iteration);
  }
  return reader;
}

std::vector<std::string> CheckpointReader::Groups() const {
  std::vector<std::string> names;
  for (const Manifest::Group& group : manifest_.groups) names.push_back(group.name);
  return names;
}

const TensorFiles* CheckpointReader::Group(std::string_view group) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (manifest_.groups[i].name == group) return &groups_[i];
  }
  return nullptr;
}

const TensorType* CheckpointReader::Find(std::string_view group, std::string_view name) const {
  const TensorFiles* files = Group(group);
  const SafetensorsEntry* entry = files == nullptr ? nullptr : files->Find(name);
  return entry == nullptr || !entry->unreadable.empty() ? nullptr : &entry->type;
}

absl::Status CheckpointReader::Read(std::string_view group, std::string_view name,
                                    const TensorView& to) const {
  const TensorFiles* files = Group(group);
  if (files == nullptr) {
    return NotFound("{}: no group {}; it has: {}", path_, Quote(group), fmt::join(Groups(), ", "));
  }
  return files->Read(name, to);
}

absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(const std::string& output_dir) {
  const std::string folder = CheckpointsFolder(output_dir);
  std::vector<CheckpointInfo> all;
  if (!NameExists(folder)) return all;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const std::optional<int64_t> iteration = IterationOfName(name);
    if (!iteration.has_value()) continue;
    CheckpointInfo info = Inspect(folder + "/" + name, *iteration);
    // Removed by a running job since the folder was listed.
    if (!info.status.ok() && !NameExists(info.path)) continue;
    all.push_back(std::move(info));
  }
  std::stable_sort(all.begin(), all.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    const auto key = [](const CheckpointInfo& info) {
      return std::tuple(info.sequence == 0, info.sequence, info.iteration);
    };
    return key(a) > key(b);
  });
  return all;
}

absl::StatusOr<NewestCheckpoint> OpenNewestCheckpoint(const std::string& output_dir) {
  // A running job may remove what was just listed, or what the listing has yet to reach; it then
  // has saved a newer one.
  for (int attempt = 0;; ++attempt) {
    ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> all, ListCheckpoints(output_dir));
    NewestCheckpoint newest;
    std::vector<std::string> damaged;
    const bool again = attempt < 20;
    bool vanished = all.empty() && NameExists(CheckpointsFolder(output_dir) + "/latest");
    for (const CheckpointInfo& info : all) {
      absl::Status status = info.status;
      if (status.ok()) {
        absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(info.path);
        if (reader.ok()) {
          newest.reader = *std::move(reader);
          break;
        }
        status = reader.status();
      }
      if (again && !NameExists(info.path)) {
        vanished = true;
        break;
      }
      damaged.push_back(
          fmt::format("checkpoint {} cannot be used: {}", info.path, MessageOf(status)));
    }
    if (vanished && again) continue;
    if (!newest.reader.has_value() && !damaged.empty()) {
      return DataLoss(
          "no sound checkpoint in {}; restore one of them from a copy, or remove the folder to "
          "start over\n  {}",
          CheckpointsFolder(output_dir), fmt::join(damaged, "\n  "));
    }
    for (const std::string& message : damaged) {
      newest.passed_over.push_back(
          fmt::format("{}; using {} instead", message, newest.reader->path()));
    }
    return newest;
  }
}

}  // namespace capstan
