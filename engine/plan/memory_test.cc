#include "engine/plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/base/random.h"

namespace capstan {
namespace {

// Pairs that are alive at one step must not share a byte.
void ExpectDisjoint(const std::vector<LiveRange>& ranges, int64_t arena) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].offset % kBufferAlignment, 0);
    EXPECT_LE(ranges[i].offset + ranges[i].bytes, arena);
    for (size_t j = 0; j < i; ++j) {
      const LiveRange &a = ranges[i], &b = ranges[j];
      if (a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
          << "ranges " << i << " and " << j;
    }
  }
}

TEST(PlaceBuffers, ReusesMemoryOfTheDead) {
  std::vector<LiveRange> ranges = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}};
  EXPECT_EQ(PlaceBuffers(&ranges), 256);  // two of 128: neighbours overlap, the third fits again
  ExpectDisjoint(ranges, 256);
  EXPECT_EQ(ranges[0].offset, ranges[2].offset);
}

TEST(PlaceBuffers, EmptyNeedsNothing) {
  std::vector<LiveRange> ranges;
  EXPECT_EQ(PlaceBuffers(&ranges), 0);
}

TEST(PlaceBuffers, RandomLivesNeverOverlapAndStayNearTheLowerBound) {
  const RandomKey key(7);
  std::vector<LiveRange> ranges;
  std::vector<int64_t> alive(210, 0);
  for (uint64_t i = 0; i < 200; ++i) {
    LiveRange r{.bytes = 1 + static_cast<int64_t>(key.Below(3 * i, 5000))};
    r.first = static_cast<int32_t>(key.Below(3 * i + 1, 200));
    r.last = r.first + static_cast<int32_t>(key.Below(3 * i + 2, 10));
    for (int32_t s = r.first; s <= r.last; ++s) alive[static_cast<size_t>(s)] += r.bytes;
    ranges.push_back(r);
  }
  const int64_t arena = PlaceBuffers(&ranges);
  ExpectDisjoint(ranges, arena);
  const int64_t bound = *std::max_element(alive.begin(), alive.end());
  EXPECT_LE(static_cast<double>(arena), 1.25 * static_cast<double>(bound));
}

}  // namespace
}  // namespace capstan
