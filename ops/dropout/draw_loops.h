// The draws of a tensor's elements in memory order, for kernels that walk through memory.
//
//   const DrawLoops loops(y.type, mask);
//   mask.Keeps(mask.first() + loops.At(i));   // of the element at place i in memory
//   loops.innermost();                        // its neighbours: up to `size`, `stride` draws apart
#pragma once

#include <array>

#include "ops/dropout/dropout.h"

namespace capstan {

// What is constexpr works on a GPU too.
class DrawLoops {
 public:
  // A loop in memory order whose steps are equally far apart in draws.
  struct Loop {
    int64_t size = 1, stride = 0;
  };

  DrawLoops(const TensorType& type, const DropoutMask& mask) {
    constexpr std::array<int, 4> kImageOrder = {0, 2, 3, 1};
    for (int i = 0; i < type.ndim(); ++i) {
      const bool image = type.format == MemoryFormat::kChannelsLast;
      const int d = image ? kImageOrder[static_cast<size_t>(i)] : i;
      Add({type.shape[d], mask.stride(d)});
    }
    if (count_ == 0) loops_[static_cast<size_t>(count_++)] = {};
  }

  constexpr Loop innermost() const { return loops_[static_cast<size_t>(count_ - 1)]; }

  constexpr uint64_t At(int64_t place) const {
    int64_t draw = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      const Loop& loop = loops_[static_cast<size_t>(i)];
      draw += place % loop.size * loop.stride;
      place /= loop.size;
    }
    return static_cast<uint64_t>(draw);
  }

 private:
  // As few as possible, outermost first.
  void Add(Loop loop) {
    if (loop.size == 1) return;
    if (count_ > 0) {
      Loop& outer = loops_[static_cast<size_t>(count_ - 1)];
      if (outer.stride == loop.size * loop.stride) {
        outer = {outer.size * loop.size, loop.stride};
        return;
      }
    }
    loops_[static_cast<size_t>(count_++)] = loop;
  }

  std::array<Loop, Shape::kMaxNdim> loops_;
  int count_ = 0;
};

}  // namespace capstan
