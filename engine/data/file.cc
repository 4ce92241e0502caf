#include "engine/data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/status.h"

namespace capstan {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

absl::Status ReadFile(const std::string& path, std::string* bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes must not wait for ever.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return ErrnoStatus(errno, "open " + path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, "read " + path);
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("read {}: not a regular file", path);
  bytes->resize(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t n = read(file.get(), bytes->data() + done, bytes->size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read " + path);
    if (n == 0) return DataLoss("{}: the file became shorter while it was read", path);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

std::string JoinPath(const std::string& root, const std::string& path) {
  if (root.empty() || path.starts_with('/')) return path;
  return root.ends_with('/') ? root + path : root + "/" + path;
}

}  // namespace capstan
