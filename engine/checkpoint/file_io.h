// Files as checkpoints need them: hashed while written, synced before closed, errors that name the
// path. A checksum is XXH3-64 (xxhash.com) of a file's bytes, printed as 16 hex digits.
//
// Plain functions are safe from any thread; an OutputFile belongs to one thread.
//
//   ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
//   RETURN_IF_ERROR(file.Write(data, size));
//   RETURN_IF_ERROR(file.Finish());            // on the disk, or an error
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace capstan {

// Owns a file descriptor; -1 is none.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(other.Release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Gives the descriptor away.
  int Release();

 private:
  int fd_ = -1;
};

// Bytes and checksum of a file.
struct FileSummary {
  uint64_t bytes = 0;
  uint64_t xxh3 = 0;
  friend bool operator==(const FileSummary&, const FileSummary&) = default;
};

// A new file (an old one of that name is emptied). Closed without Finish, its content is undefined.
class OutputFile {
 public:
  static absl::StatusOr<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  absl::Status Write(const void* data, size_t size);
  absl::Status Write(std::string_view text) { return Write(text.data(), text.size()); }
  // Writes what is buffered, syncs to the disk and closes.
  absl::StatusOr<FileSummary> Finish();

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  absl::Status WriteThrough(const char* data, size_t size);

  std::unique_ptr<State> state_;
};

uint64_t Xxh3(std::string_view bytes);
// "00c0ffee00c0ffee"
std::string ChecksumText(uint64_t xxh3);

// A whole regular file; DataLoss when it is larger than `limit` bytes.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit);
// Reads exactly `size` bytes at `offset`; DataLoss naming `path` when the file ends before.
absl::Status ReadExactly(int fd, const std::string& path, uint64_t offset, void* to, size_t size);
absl::StatusOr<FileHandle> OpenForReading(const std::string& path, uint64_t* bytes);
absl::StatusOr<FileSummary> SummarizeFile(const std::string& path);

// Makes names created, renamed or removed in a folder durable.
absl::Status SyncFolder(const std::string& path);
// The status of a failed write: ResourceExhausted where the disk, a quota or a limit is full.
absl::Status WriteError(int error, const std::string& attempted);
// Puts a new content in the place of a file at once: after a kill or a power cut it is the old one
// or the new one. A kill may leave `path`.tmp, which the next call overwrites.
absl::Status ReplaceFile(const std::string& path, std::string_view content);
// Names in a folder, sorted by bytes, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);
// Removes a file, a link or a folder with all it holds; nothing there is no error.
absl::Status RemoveTree(const std::string& path);
// True for a name that exists, whatever it is (a dangling link too).
bool NameExists(const std::string& path);
// Where a link points to; any other path as it is.
std::string FollowLink(const std::string& path);
// Bytes that this process may still write to the file system of `path`; 0 when unknown.
uint64_t FreeBytes(const std::string& path);

}  // namespace capstan
