#include "engine/checkpoint/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/safetensors.h"

namespace capstan {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string Amount(uint64_t bytes) {
  return fmt::format("{} bytes ({})", bytes, HumanBytes(static_cast<double>(bytes)));
}

void PrintTensors(const TensorFiles& files, Out out) {
  size_t width = 0;
  for (const std::string& name : files.Names()) width = std::max(width, Quote(name).size());
  uint64_t bytes = 0;
  for (const SafetensorsFile& file : files.files()) {
    for (const auto& [key, value] : file.metadata()) {
      fmt::format_to(out, "  metadata {}: {}\n", Quote(key), Quote(value));
    }
    for (const SafetensorsEntry& entry : file.entries()) {
      fmt::format_to(out, "  {:<{}}  {}[{}]  {} bytes{}\n", Quote(entry.name), width, entry.dtype,
                     fmt::join(entry.dims, ","), entry.bytes,
                     entry.unreadable.empty() ? "" : "  unreadable: " + entry.unreadable);
      bytes += entry.bytes;
    }
  }
  fmt::format_to(out, "  {} tensors, {}\n", files.Names().size(), Amount(bytes));
}

std::string DescribeFiles(const std::string& path, const TensorFiles& files) {
  std::string text = fmt::format("{}\n", path);
  PrintTensors(files, std::back_inserter(text));
  return text;
}

std::string DescribeFolder(const std::string& path, const Manifest& manifest) {
  std::string text =
      fmt::format("checkpoint {}\n  iteration {}, save number {}, {}\n", path, manifest.iteration,
                  manifest.sequence, Amount(manifest.TotalBytes()));
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "files\n");
  bool sound = true;
  for (const Manifest::File& file : manifest.files) {
    Manifest alone;
    alone.files = {file};
    const absl::Status status = CheckFileContents(path, alone);
    sound &= status.ok();
    fmt::format_to(out, "  {}  {} bytes  xxh3 {}  {}\n", file.name, file.summary.bytes,
                   ChecksumText(file.summary.xxh3),
                   status.ok() ? "ok" : "DAMAGED: " + MessageOf(status));
  }
  for (const Manifest::Group& group : manifest.groups) {
    fmt::format_to(out, "{}\n", group.name);
    std::vector<std::string> paths;
    for (const std::string& name : group.files) paths.push_back(path + "/" + name);
    const absl::StatusOr<TensorFiles> files = TensorFiles::OpenAll(paths);
    if (files.ok()) {
      PrintTensors(*files, out);
    } else {
      sound = false;
      fmt::format_to(out, "  {}\n", MessageOf(files.status()));
    }
  }
  fmt::format_to(out, "state\n");
  const absl::StatusOr<std::string> state = ReadWholeFile(path + "/" + kStateName, 64 << 20);
  if (state.ok()) {
    for (const std::string_view line : Split(Trim(*state), '\n')) {
      fmt::format_to(out, "  {}\n", line);
    }
  } else {
    sound = false;
    fmt::format_to(out, "  {}\n", MessageOf(state.status()));
  }
  fmt::format_to(out, "{}\n", sound ? "all checksums hold" : "DAMAGED");
  return text;
}

absl::StatusOr<std::string> DescribeOutputFolder(const std::string& output_dir) {
  ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> all, ListCheckpoints(output_dir));
  const std::string folder = CheckpointsFolder(output_dir);
  std::string text = fmt::format("{}: {} checkpoints, newest first\n", folder, all.size());
  const Out out = std::back_inserter(text);
  for (const CheckpointInfo& info : all) {
    fmt::format_to(out, "  {}  {}\n", CheckpointName(info.iteration),
                   info.status.ok() ? Amount(info.bytes) : "DAMAGED: " + MessageOf(info.status));
  }
  for (const char* pointer : {"latest", "best"}) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(folder + "/" + pointer, error);
    if (!error) fmt::format_to(out, "  {} -> {}\n", pointer, target.string());
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> DescribeCheckpoint(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return NotFound("{}: no such file or folder", path);
  if (!std::filesystem::is_directory(path, error)) {
    ASSIGN_OR_RETURN(const TensorFiles files, TensorFiles::Open(path));
    return DescribeFiles(path, files);
  }
  if (NameExists(path + "/" + kManifestName)) {
    const std::string folder = FollowLink(path);
    const absl::StatusOr<Manifest> manifest = ReadManifest(folder);
    if (manifest.ok()) return DescribeFolder(folder, *manifest);
    return fmt::format("checkpoint {}\nDAMAGED: {}\n", folder, MessageOf(manifest.status()));
  }
  if (NameExists(CheckpointsFolder(path))) return DescribeOutputFolder(path);
  return InvalidArgument(
      "{}: neither a checkpoint (no {}) nor an output folder (no checkpoints/); give one of them, "
      "or a safetensors file",
      path, kManifestName);
}

}  // namespace capstan
