// Places buffers with known lives into one arena so that buffers alive at the same step never
// overlap.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

// Every offset is a multiple of this (a cache line, and what vector units like).
inline constexpr int64_t kBufferAlignment = 64;

struct LiveRange {
  int64_t bytes = 0;
  int32_t first = 0;   // the step that writes it
  int32_t last = 0;    // the last step that reads it
  int64_t offset = 0;  // result
};

// Fills the offsets, largest buffers first, each at the lowest free place (Pisarchyk and Lee,
// "Efficient memory management for deep neural net inference", 2020: greedy by size). Returns the
// size of the arena in bytes.
int64_t PlaceBuffers(std::vector<LiveRange>* ranges);

}  // namespace capstan
