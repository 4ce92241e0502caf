// ByteSource: bytes that are read by offset, from a file or from memory (tests, fuzzers). What
// reads weights asks one for what it needs and never holds a whole file.
//
// Reads past the end are errors that name the source. Immutable: safe from any thread.
//
//   ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> file, OpenFileBytes("resnet50.pth"));
//   RETURN_IF_ERROR(file->Read(0, magic, 4));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace capstan {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `to` with the bytes at `offset`; DataLoss where the source ends before.
  virtual absl::Status Read(uint64_t offset, void* to, size_t size) const = 0;

  uint64_t size() const { return size_; }
  // The path, for messages.
  const std::string& name() const { return name_; }

 protected:
  ByteSource(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}

 private:
  const std::string name_;
  const uint64_t size_;
};

// A regular file, which stays open.
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFileBytes(const std::string& path);

// `bytes` must outlive the source.
std::shared_ptr<const ByteSource> MemoryBytes(std::string name, std::string_view bytes);

// A piece of a source.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// The bytes of a range as text.
absl::StatusOr<std::string> ReadText(const ByteSource& source, const ByteRange& range);

}  // namespace capstan
