// Records of TensorBoard's event files (events.out.tfevents.*): TFRecord framing around protobuf
// messages `Event` (tensorflow/core/util/event.proto), written by hand, for there are only three
// of them. A file is a version record, a start record, then scalars. Pure functions.
//
//   file << VersionRecord(now) << StartRecord(now, 1);
//   file << ScalarsRecord(now, 10, {{"train/loss", 2.3}, {"train/lr", 0.1}});
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capstan {

// `wall_time` is in seconds since 1970, fractions included.
std::string VersionRecord(double wall_time);
// TensorBoard forgets what earlier files of the folder have at `step` and later.
std::string StartRecord(double wall_time, int64_t step);
// Values are stored as 32-bit floats.
std::string ScalarsRecord(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars);

// CRC-32C (Castagnoli), as RFC 3720 has it.
uint32_t Crc32c(std::string_view bytes);

}  // namespace capstan
