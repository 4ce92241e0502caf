#include "engine/checkpoint/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/status.h"

namespace capstan {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

struct FreeHashState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using HashState = std::unique_ptr<XXH3_state_t, FreeHashState>;

HashState NewHash() {
  HashState hash(XXH3_createState());
  XXH3_64bits_reset(hash.get());
  return hash;
}

}  // namespace

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) close(fd_);
}

int FileHandle::Release() { return std::exchange(fd_, -1); }

struct OutputFile::State {
  std::string path;
  FileHandle file;
  std::string buffer;
  HashState hash = NewHash();
  uint64_t bytes = 0;
};

OutputFile::OutputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->file = FileHandle(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!state->file.valid()) return WriteError(errno, "create " + path);
  state->buffer.reserve(kBufferBytes);
  return OutputFile(std::move(state));
}

absl::Status OutputFile::Write(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  XXH3_64bits_update(state_->hash.get(), bytes, size);
  state_->bytes += size;
  if (state_->buffer.size() + size <= kBufferBytes) {
    state_->buffer.append(bytes, size);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(WriteThrough(state_->buffer.data(), state_->buffer.size()));
  state_->buffer.clear();
  if (size >= kBufferBytes) return WriteThrough(bytes, size);
  state_->buffer.append(bytes, size);
  return absl::OkStatus();
}

absl::Status OutputFile::WriteThrough(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(state_->file.get(), data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return WriteError(n < 0 ? errno : EIO, "write " + state_->path);
    data += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileSummary> OutputFile::Finish() {
  RETURN_IF_ERROR(WriteThrough(state_->buffer.data(), state_->buffer.size()));
  state_->buffer.clear();
  if (fsync(state_->file.get()) != 0) return WriteError(errno, "sync " + state_->path);
  // Network file systems report a full disk only here.
  if (close(state_->file.Release()) != 0) return WriteError(errno, "close " + state_->path);
  return FileSummary{state_->bytes, XXH3_64bits_digest(state_->hash.get())};
}

uint64_t Xxh3(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string ChecksumText(uint64_t xxh3) { return fmt::format("{:016x}", xxh3); }

absl::StatusOr<FileHandle> OpenForReading(const std::string& path, uint64_t* bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes must not wait for ever.
  FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return ErrnoStatus(errno, "open " + path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, "read " + path);
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("{}: not a regular file", path);
  *bytes = static_cast<uint64_t>(info.st_size);
  return file;
}

absl::Status ReadExactly(int fd, const std::string& path, uint64_t offset, void* to, size_t size) {
  char* out = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = pread(fd, out, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("read {} at byte {}", path, offset));
    if (n == 0) {
      return DataLoss("{}: ends at byte {}, {} bytes before expected; it is truncated", path,
                      offset, size);
    }
    out += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, uint64_t limit) {
  uint64_t bytes = 0;
  ASSIGN_OR_RETURN(const FileHandle file, OpenForReading(path, &bytes));
  if (bytes > limit) {
    return DataLoss("{}: {} bytes where at most {} make sense; it is damaged", path, bytes, limit);
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  RETURN_IF_ERROR(ReadExactly(file.get(), path, 0, text.data(), text.size()));
  return text;
}

absl::StatusOr<FileSummary> SummarizeFile(const std::string& path) {
  FileSummary summary;
  ASSIGN_OR_RETURN(const FileHandle file, OpenForReading(path, &summary.bytes));
  const HashState hash = NewHash();
  std::string buffer(std::min<uint64_t>(summary.bytes, uint64_t{1} << 20), '\0');
  for (uint64_t done = 0; done < summary.bytes;) {
    const size_t n = std::min<uint64_t>(buffer.size(), summary.bytes - done);
    RETURN_IF_ERROR(ReadExactly(file.get(), path, done, buffer.data(), n));
    XXH3_64bits_update(hash.get(), buffer.data(), n);
    done += n;
  }
  summary.xxh3 = XXH3_64bits_digest(hash.get());
  return summary;
}

absl::Status SyncFolder(const std::string& path) {
  const FileHandle folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ErrnoStatus(errno, "open " + path);
  // Some file systems cannot sync a folder and say EINVAL; they leave us nothing better to do.
  if (fsync(folder.get()) != 0 && errno != EINVAL) return WriteError(errno, "sync " + path);
  return absl::OkStatus();
}

absl::Status WriteError(int error, const std::string& attempted) {
  const absl::Status status = ErrnoStatus(error, attempted);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::Status(absl::StatusCode::kResourceExhausted, status.message());
  }
  return status;
}

absl::Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string fresh = path + ".tmp";
  const auto write = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(fresh));
    RETURN_IF_ERROR(file.Write(content));
    RETURN_IF_ERROR(file.Finish().status());
    if (std::rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
    return WriteError(errno, "rename " + fresh + " to " + path);
  };
  const absl::Status status = write();
  if (!status.ok()) std::remove(fresh.c_str());
  return status;
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return ErrnoStatus(errno, "list " + path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  closedir(folder);
  if (error != 0) return ErrnoStatus(error, "list " + path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? ErrnoStatus(error.value(), "remove " + path) : absl::OkStatus();
}

bool NameExists(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

std::string FollowLink(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path at = path;
  std::error_code error;
  // A ring of links ends somewhere; what is read there fails.
  for (int links = 0; links < 40 && fs::is_symlink(at, error); ++links) {
    const fs::path target = fs::read_symlink(at, error);
    if (error) break;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return at.string();
}

uint64_t FreeBytes(const std::string& path) {
  struct statvfs info {};
  return statvfs(path.c_str(), &info) == 0 ? uint64_t{info.f_bavail} * info.f_frsize : 0;
}

}  // namespace capstan
