// Exit statuses of the trainer: part of its contract with scripts.
#pragma once

#include "absl/status/status.h"

namespace capstan {

inline constexpr int kExitDone = 0;
inline constexpr int kExitDifference = 1;  // verify-resume or compare found one
inline constexpr int kExitBadJob = 2;      // or usage
inline constexpr int kExitBadData = 3;
inline constexpr int kExitDevice = 4;  // device, communication, another rank, the system
inline constexpr int kExitDiverged = 5;
inline constexpr int kExitDoesNotFit = 6;
inline constexpr int kExitStopped = 75;  // politely, checkpoint saved

inline int ExitStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitBadJob;
    case absl::StatusCode::kDataLoss:
      return kExitBadData;
    case absl::StatusCode::kOutOfRange:
      return kExitDiverged;
    case absl::StatusCode::kResourceExhausted:
      return kExitDoesNotFit;
    default:
      return kExitDevice;
  }
}

}  // namespace capstan
