// The manifest of a checkpoint: which files belong to it, with sizes and checksums. It is written
// last, so a folder with a sound manifest is complete.
//
// The last lines of the file hold the checksum of all bytes before them, so that a change anywhere
// in the manifest is seen too. Plain values; copy freely.
//
//   ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(folder));
//   RETURN_IF_ERROR(CheckFileSizes(folder, manifest));      // quick
//   RETURN_IF_ERROR(CheckFileContents(folder, manifest));   // reads every byte
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/file_io.h"

namespace capstan {

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr char kStateName[] = "state.json";
inline constexpr int64_t kCheckpointVersion = 1;

struct Manifest {
  struct File {
    std::string name;
    FileSummary summary;
  };
  struct Group {
    std::string name;                // "weights"
    std::vector<std::string> files;  // safetensors files, in order
  };

  int64_t iteration = 0;
  // Counts the saves of an output folder; orders its checkpoints even where a run went back to an
  // earlier iteration.
  int64_t sequence = 0;
  std::vector<Group> groups;
  std::vector<File> files;

  uint64_t TotalBytes() const;
};

std::string ManifestToJson(const Manifest& manifest);
// DataLoss; FailedPrecondition for a version that this program does not read.
absl::StatusOr<Manifest> ManifestFromJson(std::string_view text);
// Of a checkpoint folder. NotFound when the folder is missing; the messages name the file.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// DataLoss naming the file that is missing or has another size.
absl::Status CheckFileSizes(const std::string& folder, const Manifest& manifest);
// DataLoss naming the file whose size or bytes changed.
absl::Status CheckFileContents(const std::string& folder, const Manifest& manifest);

}  // namespace capstan
