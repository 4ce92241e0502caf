#include "engine/weights/byte_source.h"

#include <cstring>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/file_io.h"

namespace capstan {
namespace {

class FileBytes : public ByteSource {
 public:
  FileBytes(const std::string& path, uint64_t size, FileHandle file)
      : ByteSource(path, size), file_(std::move(file)) {}

  absl::Status Read(uint64_t offset, void* to, size_t size) const override {
    return ReadExactly(file_.get(), name(), offset, to, size);
  }

 private:
  const FileHandle file_;
};

class BytesInMemory : public ByteSource {
 public:
  BytesInMemory(std::string name, std::string_view bytes)
      : ByteSource(std::move(name), bytes.size()), bytes_(bytes) {}

  absl::Status Read(uint64_t offset, void* to, size_t size) const override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return DataLoss("{}: ends at byte {}; it is truncated", name(), bytes_.size());
    }
    std::memcpy(to, bytes_.data() + offset, size);
    return absl::OkStatus();
  }

 private:
  const std::string_view bytes_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFileBytes(const std::string& path) {
  uint64_t size = 0;
  ASSIGN_OR_RETURN(FileHandle file, OpenForReading(path, &size));
  return std::make_shared<const FileBytes>(path, size, std::move(file));
}

std::shared_ptr<const ByteSource> MemoryBytes(std::string name, std::string_view bytes) {
  return std::make_shared<const BytesInMemory>(std::move(name), bytes);
}

absl::StatusOr<std::string> ReadText(const ByteSource& source, const ByteRange& range) {
  // Checked before the memory is asked for: a size from a damaged file may be anything.
  if (range.offset > source.size() || range.size > source.size() - range.offset) {
    return DataLoss("{}: {} bytes are due at byte {}, but it ends at {}; it is truncated",
                    source.name(), range.size, range.offset, source.size());
  }
  std::string text(static_cast<size_t>(range.size), '\0');
  RETURN_IF_ERROR(source.Read(range.offset, text.data(), text.size()));
  return text;
}

}  // namespace capstan
