#include "engine/plan/memory.h"

#include <algorithm>
#include <numeric>

namespace capstan {
namespace {

int64_t RoundUp(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

}  // namespace

int64_t PlaceBuffers(std::vector<LiveRange>* ranges) {
  std::vector<size_t> order(ranges->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*ranges)[a].bytes > (*ranges)[b].bytes; });
  std::vector<size_t> placed;  // by offset
  int64_t arena = 0;
  for (const size_t i : order) {
    LiveRange& r = (*ranges)[i];
    int64_t at = 0;
    for (const size_t j : placed) {
      const LiveRange& other = (*ranges)[j];
      if (other.last < r.first || r.last < other.first) continue;
      if (at + RoundUp(r.bytes) <= other.offset) break;
      at = std::max(at, other.offset + RoundUp(other.bytes));
    }
    r.offset = at;
    arena = std::max(arena, at + RoundUp(r.bytes));
    const auto place = std::upper_bound(placed.begin(), placed.end(), i, [&](size_t a, size_t b) {
      return (*ranges)[a].offset < (*ranges)[b].offset;
    });
    placed.insert(place, i);
  }
  return arena;
}

}  // namespace capstan
