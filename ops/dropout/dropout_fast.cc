// Kernel over memory order that draws many numbers at a time.
#include <algorithm>
#include <array>

#include "engine/kernel/flat.h"
#include "ops/dropout/dropout.h"

namespace capstan {
namespace {

// A loop in memory order whose steps are equally far apart in draws.
struct Loop {
  int64_t size = 1, stride = 0;
};

// The loops of a tensor, outermost first, as few as possible.
struct Loops {
  std::array<Loop, Shape::kMaxNdim> loops;
  int count = 0;

  void Add(Loop loop) {
    if (loop.size == 1) return;
    if (count > 0) {
      Loop& outer = loops[static_cast<size_t>(count - 1)];
      if (outer.stride == loop.size * loop.stride) {
        outer = {outer.size * loop.size, loop.stride};
        return;
      }
    }
    loops[static_cast<size_t>(count++)] = loop;
  }
};

Loops LoopsOf(const TensorType& type, const DropoutMask& mask) {
  constexpr std::array<int, 4> kImageOrder = {0, 2, 3, 1};
  Loops loops;
  for (int i = 0; i < type.ndim(); ++i) {
    const bool image = type.format == MemoryFormat::kChannelsLast;
    const int d = image ? kImageOrder[static_cast<size_t>(i)] : i;
    loops.Add({type.shape[d], mask.stride(d)});
  }
  if (loops.count == 0) loops.loops[static_cast<size_t>(loops.count++)] = {};
  return loops;
}

// The draw, beyond the first, of the element at a place in memory.
int64_t DrawAt(const Loops& loops, int64_t place) {
  int64_t draw = 0;
  for (int i = loops.count - 1; i >= 0; --i) {
    const Loop& loop = loops.loops[static_cast<size_t>(i)];
    draw += place % loop.size * loop.stride;
    place /= loop.size;
  }
  return draw;
}

void DropoutKernel(KernelContext& context, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const AnyStruct& attrs) {
  const TensorType& type = outputs[0].type;
  const DropoutMask mask(context, attrs.As<DropoutAttrs>(), type.shape);
  const Loops loops = LoopsOf(type, mask);
  const Loop run = loops.loops[static_cast<size_t>(loops.count - 1)];
  const uint64_t first = mask.DrawOf(std::array<int64_t, Shape::kMaxNdim>{});
  const auto scale = static_cast<float>(mask.scale());
  const float* x = inputs[0].Data<float>();
  float* y = outputs[0].Data<float>();
  ParallelFor(context, type.count(), kFlatGrain / 4, [&](int64_t begin, int64_t end) {
    std::array<uint32_t, 256> bits;
    for (int64_t i = begin; i < end;) {
      const int64_t n = std::min({end - i, run.size - i % run.size, int64_t{bits.size()}});
      mask.key().UpperBits(first + static_cast<uint64_t>(DrawAt(loops, i)),
                           static_cast<uint64_t>(run.stride),
                           std::span(bits).first(static_cast<size_t>(n)));
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) {
        y[i + k] = x[i + k] * (mask.KeepsUpperBits(bits[static_cast<size_t>(k)]) ? scale : 0.f);
      }
      i += n;
    }
  });
}

}  // namespace

std::vector<KernelRow> DropoutFastKernels() {
  return {{.op = "dropout",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = InOneOrder,
           .fn = DropoutKernel}};
}

}  // namespace capstan
