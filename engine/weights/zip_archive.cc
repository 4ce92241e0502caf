#include "engine/weights/zip_archive.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

static_assert(std::endian::native == std::endian::little, "ZIP numbers are little-endian");

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kDirectoryEnd64Locator = 0x07064b50;
constexpr uint16_t kZip64Extra = 1;
constexpr uint64_t kMaxDirectoryBytes = 16'000'000;  // of 100,000 tensors and more

constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kDirectoryEntryBytes = 46;
constexpr size_t kDirectoryEndBytes = 22;
constexpr size_t kDirectoryEnd64Bytes = 56;
constexpr size_t kLocatorBytes = 20;

template <typename T>
T NumberAt(std::string_view bytes, size_t offset) {
  T value = 0;
  CHECK(offset + sizeof(T) <= bytes.size()) << offset;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

absl::Status Damaged(const ByteSource& source, const std::string& what) {
  return DataLoss("{}: not a sound ZIP file: {}; make or download it again", source.name(), what);
}

// Where the directory is and how many entries it has.
struct Directory {
  ByteRange range;
  uint64_t entries = 0;
};

absl::StatusOr<Directory> FindDirectory(const ByteSource& source) {
  // The end record is followed by a comment of at most 65,535 bytes.
  const uint64_t tail_bytes = std::min<uint64_t>(source.size(), kDirectoryEndBytes + 65'535);
  const uint64_t tail_start = source.size() - tail_bytes;
  ASSIGN_OR_RETURN(const std::string tail, ReadText(source, {tail_start, tail_bytes}));
  const std::string mark("PK\x05\x06");
  size_t at = tail.rfind(mark);
  while (at != std::string::npos && at + kDirectoryEndBytes > tail.size()) {
    if (at == 0) break;
    at = tail.rfind(mark, at - 1);
  }
  if (at == std::string::npos || at + kDirectoryEndBytes > tail.size()) {
    return Damaged(source, "its directory is missing (the file is truncated)");
  }
  const std::string_view end = std::string_view(tail).substr(at);
  Directory directory{{NumberAt<uint32_t>(end, 16), NumberAt<uint32_t>(end, 12)},
                      NumberAt<uint16_t>(end, 10)};
  if (at >= kLocatorBytes &&
      NumberAt<uint32_t>(tail, at - kLocatorBytes) == kDirectoryEnd64Locator) {
    const auto end64_offset = NumberAt<uint64_t>(tail, at - kLocatorBytes + 8);
    ASSIGN_OR_RETURN(const std::string end64,
                     ReadText(source, {end64_offset, kDirectoryEnd64Bytes}));
    if (NumberAt<uint32_t>(end64, 0) != kDirectoryEnd64) {
      return Damaged(source, "its ZIP64 record is not where it should be");
    }
    directory = {{NumberAt<uint64_t>(end64, 48), NumberAt<uint64_t>(end64, 40)},
                 NumberAt<uint64_t>(end64, 32)};
  }
  if (directory.range.size > kMaxDirectoryBytes) {
    return Damaged(source, fmt::format("its directory claims {} bytes", directory.range.size));
  }
  return directory;
}

// Replaces sizes that did not fit 32 bits by those of the ZIP64 extra field.
bool ReadZip64(std::string_view extra, uint64_t* unpacked, uint64_t* packed, uint64_t* header) {
  while (extra.size() >= 4) {
    const auto id = NumberAt<uint16_t>(extra, 0);
    const size_t size = NumberAt<uint16_t>(extra, 2);
    if (size > extra.size() - 4) return false;
    std::string_view field = extra.substr(4, size);
    if (id == kZip64Extra) {
      for (uint64_t* value : {unpacked, packed, header}) {
        if (*value != UINT32_MAX) continue;
        if (field.size() < 8) return false;
        *value = NumberAt<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + size);
  }
  return true;
}

}  // namespace

absl::StatusOr<ZipArchive> ZipArchive::Open(std::shared_ptr<const ByteSource> source) {
  ZipArchive zip;
  ASSIGN_OR_RETURN(const Directory directory, FindDirectory(*source));
  ASSIGN_OR_RETURN(const std::string bytes, ReadText(*source, directory.range));
  std::string_view rest = bytes;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (rest.size() < kDirectoryEntryBytes || NumberAt<uint32_t>(rest, 0) != kDirectoryEntry) {
      return Damaged(*source, fmt::format("entry {} of its directory is broken", i));
    }
    const auto flags = NumberAt<uint16_t>(rest, 8), method = NumberAt<uint16_t>(rest, 10);
    uint64_t packed = NumberAt<uint32_t>(rest, 20), unpacked = NumberAt<uint32_t>(rest, 24);
    uint64_t header = NumberAt<uint32_t>(rest, 42);
    const size_t name_bytes = NumberAt<uint16_t>(rest, 28);
    const size_t extra_bytes = NumberAt<uint16_t>(rest, 30);
    const size_t comment_bytes = NumberAt<uint16_t>(rest, 32);
    rest.remove_prefix(kDirectoryEntryBytes);
    if (rest.size() < name_bytes + extra_bytes + comment_bytes) {
      return Damaged(*source, fmt::format("entry {} of its directory is cut off", i));
    }
    const std::string name(rest.substr(0, name_bytes));
    if (!ReadZip64(rest.substr(name_bytes, extra_bytes), &unpacked, &packed, &header)) {
      return Damaged(*source, fmt::format("the sizes of its entry {} are broken", Quote(name)));
    }
    rest.remove_prefix(name_bytes + extra_bytes + comment_bytes);

    Entry entry{.header = header, .bytes = unpacked};
    if ((flags & 1) != 0) {
      entry.unreadable = "encrypted";
    } else if (method != 0) {
      entry.unreadable = "compressed";
    } else if (packed != unpacked) {
      return Damaged(*source, fmt::format("its entry {} has two sizes", Quote(name)));
    }
    if (!zip.entries_.emplace(name, std::move(entry)).second) {
      return Damaged(*source, fmt::format("its entry {} is there twice", Quote(name)));
    }
  }
  zip.source_ = std::move(source);
  return zip;
}

std::string ZipArchive::NameEndingWith(std::string_view suffix) const {
  for (const auto& [name, entry] : entries_) {
    if (name.ends_with(suffix)) return name;
  }
  return "";
}

absl::StatusOr<ByteRange> ZipArchive::Find(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    return Damaged(*source_, fmt::format("its entry {} is missing", Quote(name)));
  }
  const Entry& entry = it->second;
  if (!entry.unreadable.empty()) {
    return InvalidArgument(
        "{}: its entry {} is {}; PyTorch stores entries as they are: unpack the file and pack it "
        "with `zip -0 -r`, or save it again with torch.save",
        source_->name(), Quote(name), entry.unreadable);
  }
  ASSIGN_OR_RETURN(const std::string header, ReadText(*source_, {entry.header, kLocalHeaderBytes}));
  if (NumberAt<uint32_t>(header, 0) != kLocalHeader) {
    return Damaged(*source_, fmt::format("the header of its entry {} is broken", Quote(name)));
  }
  const uint64_t start = entry.header + kLocalHeaderBytes + NumberAt<uint16_t>(header, 26) +
                         NumberAt<uint16_t>(header, 28);
  if (start > source_->size() || entry.bytes > source_->size() - start) {
    return Damaged(*source_, fmt::format("its entry {} ends after the file", Quote(name)));
  }
  return ByteRange{start, entry.bytes};
}

}  // namespace capstan
