#include "engine/base/status.h"

#include <cstring>

namespace capstan {
namespace internal {

absl::Status MakeStatus(absl::StatusCode code, const std::string& message) {
  return absl::Status(code, message);
}

absl::Status AddFrame(const absl::Status& status, const std::string& frame) {
  return absl::Status(status.code(), MessageOf(status) + "\n  " + frame);
}

}  // namespace internal

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

absl::Status WithCode(const absl::Status& status, absl::StatusCode code) {
  return absl::Status(code, status.message());
}

absl::Status ErrnoStatus(int error, const std::string& attempted) {
  const absl::StatusCode code = error == ENOENT   ? absl::StatusCode::kNotFound
                                : error == ENOSPC ? absl::StatusCode::kResourceExhausted
                                                  : absl::StatusCode::kFailedPrecondition;
  return absl::Status(code, attempted + ": " + std::strerror(error));
}

}  // namespace capstan
