// Errors that are the user's to mend: absl::Status with formatted text and "while ..." frames.
//
// A message says what is wrong, where (file:line:col, sample, tensor) and what to do. Faults of our
// own are CHECKs (check.h), never Status. Nothing here throws.
//
//   absl::StatusOr<Image> Decode(...) {
//     if (bytes.empty()) return InvalidArgument("{}: empty file; remove it from the list", path);
//     ASSIGN_OR_RETURN(Header h, ReadHeader(bytes), "while reading {}", path);
//     ...
//   }
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace capstan {

namespace internal {
absl::Status MakeStatus(absl::StatusCode code, const std::string& message);
absl::Status AddFrame(const absl::Status& status, const std::string& frame);
}  // namespace internal

// The message of a status as std::string (Abseil's own string_view does not format).
std::string MessageOf(const absl::Status& status);

// A bad job, argument or file content.
template <typename... Args>
absl::Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kInvalidArgument,
                              fmt::format(format, std::forward<Args>(args)...));
}

// Something named does not exist: a file, a kernel, a tensor.
template <typename... Args>
absl::Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kNotFound,
                              fmt::format(format, std::forward<Args>(args)...));
}

// Stored data is damaged: truncated, altered, inconsistent.
template <typename... Args>
absl::Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kDataLoss,
                              fmt::format(format, std::forward<Args>(args)...));
}

// The state of the world does not allow it: a full disk, a missing device, a busy folder.
template <typename... Args>
absl::Status FailedPrecondition(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kFailedPrecondition,
                              fmt::format(format, std::forward<Args>(args)...));
}

// Memory, disk or another resource does not suffice.
template <typename... Args>
absl::Status ResourceExhausted(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kResourceExhausted,
                              fmt::format(format, std::forward<Args>(args)...));
}

// A library or driver failed for no reason of the user's.
template <typename... Args>
absl::Status Internal(fmt::format_string<Args...> format, Args&&... args) {
  return internal::MakeStatus(absl::StatusCode::kInternal,
                              fmt::format(format, std::forward<Args>(args)...));
}

// The same message under another code.
absl::Status WithCode(const absl::Status& status, absl::StatusCode code);

// `errno` of a failed system call, with what was attempted: "open a/b: No such file or directory".
absl::Status ErrnoStatus(int error, const std::string& attempted);

// Adds a "while ..." frame to a failed status; an OK status passes through.
template <typename... Args>
absl::Status Annotate(const absl::Status& status, fmt::format_string<Args...> format,
                      Args&&... args) {
  return status.ok() ? status
                     : internal::AddFrame(status, fmt::format(format, std::forward<Args>(args)...));
}
inline absl::Status Annotate(const absl::Status& status) { return status; }

}  // namespace capstan

#define CAPSTAN_CONCAT_INNER_(a, b) a##b
#define CAPSTAN_CONCAT_(a, b) CAPSTAN_CONCAT_INNER_(a, b)

// RETURN_IF_ERROR(expr) or RETURN_IF_ERROR(expr, "while saving {}", path).
#define RETURN_IF_ERROR(expr, ...)                                            \
  do {                                                                        \
    if (absl::Status capstan_status_ = (expr); !capstan_status_.ok()) {       \
      return ::capstan::Annotate(capstan_status_ __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                         \
  } while (false)

// ASSIGN_OR_RETURN(lhs, statusor_expr) with an optional frame as above.
#define ASSIGN_OR_RETURN(lhs, expr, ...) \
  CAPSTAN_ASSIGN_OR_RETURN_(CAPSTAN_CONCAT_(capstan_statusor_, __LINE__), lhs, expr, __VA_ARGS__)
#define CAPSTAN_ASSIGN_OR_RETURN_(tmp, lhs, expr, ...)                   \
  auto tmp = (expr);                                                     \
  if (!tmp.ok()) {                                                       \
    return ::capstan::Annotate(tmp.status() __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                      \
  lhs = *std::move(tmp)
