#include "tools/data/write_file.h"

#include <cerrno>
#include <fstream>

#include "engine/base/status.h"
#include "engine/data/file.h"

namespace capstan {

namespace fs = std::filesystem;

absl::Status WriteFile(const fs::path& path, std::string_view bytes) {
  const fs::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return ErrnoStatus(errno, "write " + part.string());
  std::error_code error;
  fs::rename(part, path, error);
  if (error) return ErrnoStatus(error.value(), "rename to " + path.string());
  return absl::OkStatus();
}

bool FileHolds(const fs::path& path, std::string_view bytes) {
  std::string content;
  return ReadFile(path.string(), &content).ok() && content == bytes;
}

absl::Status MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "make the folder " + path.string());
  return absl::OkStatus();
}

}  // namespace capstan
