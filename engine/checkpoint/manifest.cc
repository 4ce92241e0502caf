#include "engine/checkpoint/manifest.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "capstan-checkpoint";
constexpr std::string_view kChecksumKey = "  \"manifest_xxh3\": \"";
constexpr std::string_view kChecksumEnd = "\"\n}\n";
constexpr size_t kChecksumDigits = 16;
constexpr uint64_t kMaxManifestBytes = 64 << 20;

absl::Status Malformed(const std::string& what) {
  return DataLoss("the manifest is malformed: {}", what);
}

bool IsFileName(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != ".." &&
         name != kManifestName;
}

absl::StatusOr<int64_t> ReadCount(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_unsigned() ||
      it->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return Malformed(std::string("no count ") + key);
  }
  return it->get<int64_t>();
}

absl::StatusOr<std::string> ReadText(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_string()) return Malformed(std::string("no text ") + key);
  return it->get<std::string>();
}

absl::StatusOr<uint64_t> ParseChecksum(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || ChecksumText(value) != text) {
    return Malformed("not a checksum: " + Quote(text));
  }
  return value;
}

absl::Status CheckSize(const std::string& path, uint64_t bytes, uint64_t expected) {
  if (bytes == expected) return absl::OkStatus();
  return DataLoss("{}: it has {} bytes, the manifest says {}; it is {}", path, bytes, expected,
                  bytes < expected ? "truncated" : "altered");
}

absl::Status Missing(const std::string& path) {
  return DataLoss("{}: the file is missing, but the manifest lists it", path);
}

}  // namespace

uint64_t Manifest::TotalBytes() const {
  uint64_t total = 0;
  for (const File& file : files) total += file.summary.bytes;
  return total;
}

std::string ManifestToJson(const Manifest& manifest) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kCheckpointVersion;
  json["iteration"] = manifest.iteration;
  json["sequence"] = manifest.sequence;
  json["groups"] = Json::array();
  for (const Manifest::Group& group : manifest.groups) {
    json["groups"].push_back({{"name", group.name}, {"files", group.files}});
  }
  json["files"] = Json::array();
  for (const Manifest::File& file : manifest.files) {
    json["files"].push_back({{"name", file.name},
                             {"bytes", file.summary.bytes},
                             {"xxh3", ChecksumText(file.summary.xxh3)}});
  }
  std::string text = json.dump(2);
  // The brace that closes the map moves behind the checksum.
  text.resize(text.size() - 2);
  text += ",\n";
  const std::string checksum = ChecksumText(Xxh3(text));
  text += kChecksumKey;
  text += checksum;
  text += kChecksumEnd;
  return text;
}

absl::StatusOr<Manifest> ManifestFromJson(std::string_view text) {
  const size_t tail = kChecksumKey.size() + kChecksumDigits + kChecksumEnd.size();
  if (text.size() < tail || !text.ends_with(kChecksumEnd) ||
      text.substr(text.size() - tail, kChecksumKey.size()) != kChecksumKey) {
    return DataLoss("the manifest is truncated or altered: it does not end with its checksum");
  }
  const std::string_view body = text.substr(0, text.size() - tail);
  const std::string_view stored = text.substr(body.size() + kChecksumKey.size(), kChecksumDigits);
  if (ChecksumText(Xxh3(body)) != stored) {
    return DataLoss("the manifest is altered: its checksum is {}, it says {}",
                    ChecksumText(Xxh3(body)), Quote(stored));
  }

  // From here on the text is what a program wrote; checks remain because it may be another one.
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("not a JSON map");
  ASSIGN_OR_RETURN(const std::string format, ReadText(json, "format"));
  if (format != kFormat) return Malformed("format " + Quote(format));
  ASSIGN_OR_RETURN(const int64_t version, ReadCount(json, "version"));
  if (version != kCheckpointVersion) {
    return FailedPrecondition(
        "the checkpoint has format version {}, this program reads version {}; use the {} program",
        version, kCheckpointVersion, version < kCheckpointVersion ? "older" : "newer");
  }

  Manifest manifest;
  ASSIGN_OR_RETURN(manifest.iteration, ReadCount(json, "iteration"));
  ASSIGN_OR_RETURN(manifest.sequence, ReadCount(json, "sequence"));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) return Malformed("no list files");
  for (const Json& item : *files) {
    if (!item.is_object()) return Malformed("an item of files is no map");
    Manifest::File file;
    ASSIGN_OR_RETURN(file.name, ReadText(item, "name"));
    if (!IsFileName(file.name)) return Malformed("file name " + Quote(file.name));
    ASSIGN_OR_RETURN(const int64_t bytes, ReadCount(item, "bytes"));
    file.summary.bytes = static_cast<uint64_t>(bytes);
    ASSIGN_OR_RETURN(const std::string checksum, ReadText(item, "xxh3"));
    ASSIGN_OR_RETURN(file.summary.xxh3, ParseChecksum(checksum));
    manifest.files.push_back(std::move(file));
  }
  const auto groups = json.find("groups");
  if (groups == json.end() || !groups->is_array()) return Malformed("no list groups");
  for (const Json& item : *groups) {
    if (!item.is_object()) return Malformed("an item of groups is no map");
    Manifest::Group group;
    ASSIGN_OR_RETURN(group.name, ReadText(item, "name"));
    const auto names = item.find("files");
    if (names == item.end() || !names->is_array()) return Malformed("a group without files");
    for (const Json& name : *names) {
      if (!name.is_string()) return Malformed("a group's file is no text");
      const auto& text_of_name = name.get_ref<const std::string&>();
      if (!IsFileName(text_of_name)) return Malformed("file name " + Quote(text_of_name));
      group.files.push_back(text_of_name);
    }
    manifest.groups.push_back(std::move(group));
  }
  return manifest;
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  if (!NameExists(folder)) return NotFound("{}: no such checkpoint folder", folder);
  const std::string path = folder + "/" + kManifestName;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxManifestBytes);
  if (!text.ok()) {
    if (text.status().code() != absl::StatusCode::kNotFound) return text.status();
    return DataLoss("{}: the file is missing; this is no complete checkpoint", path);
  }
  absl::StatusOr<Manifest> manifest = ManifestFromJson(*text);
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(), path + ": " + MessageOf(manifest.status()));
  }
  return manifest;
}

absl::Status CheckFileSizes(const std::string& folder, const Manifest& manifest) {
  for (const Manifest::File& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    uint64_t bytes = 0;
    const absl::StatusOr<FileHandle> handle = OpenForReading(path, &bytes);
    if (handle.status().code() == absl::StatusCode::kNotFound) return Missing(path);
    RETURN_IF_ERROR(handle.status());
    RETURN_IF_ERROR(CheckSize(path, bytes, file.summary.bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckFileContents(const std::string& folder, const Manifest& manifest) {
  // Sizes first: they find most damage without reading.
  RETURN_IF_ERROR(CheckFileSizes(folder, manifest));
  for (const Manifest::File& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    ASSIGN_OR_RETURN(const FileSummary found, SummarizeFile(path));
    RETURN_IF_ERROR(CheckSize(path, found.bytes, file.summary.bytes));
    if (found.xxh3 != file.summary.xxh3) {
      return DataLoss("{}: its bytes changed: checksum {}, the manifest says {}", path,
                      ChecksumText(found.xxh3), ChecksumText(file.summary.xxh3));
    }
  }
  return absl::OkStatus();
}

}  // namespace capstan
