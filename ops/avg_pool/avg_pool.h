// Average pooling: y[n,c,p,q] = the mean of x[n,c,h,w] over the window at (p,q).
//
// With `exclusive` (Paddle's default) the mean is over the pixels of the image; without it over the
// window cut at the padded image, padding counting as zeros (PyTorch's count_include_pad).
//
//   x = AvgPool(b, x, {.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = true});
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"
#include "ops/pool/pool_attrs.h"

namespace capstan {

struct AvgPoolAttrs {
  std::vector<int64_t> kernel = {2, 2};
  std::vector<int64_t> stride = {2, 2};
  std::vector<int64_t> padding = {0, 0};
  bool ceil_mode = false;
  bool exclusive = true;

  template <typename Owner>
  static constexpr auto FieldsOf() {
    return JoinFields(PoolFields<Owner>(),
                      std::array{Field<&AvgPoolAttrs::exclusive, Owner>(
                          "exclusive", "do not count padding in the divisor")});
  }
  static constexpr auto Fields() { return FieldsOf<AvgPoolAttrs>(); }
};

struct AvgPoolGradAttrs : AvgPoolAttrs {
  std::vector<int64_t> input_size = {1, 1};

  static constexpr auto Fields() {
    return JoinFields(FieldsOf<AvgPoolGradAttrs>(), InputSizeField<AvgPoolGradAttrs>());
  }
};

extern const OpDef kAvgPool;
extern const OpDef kAvgPoolGrad;

// x [n,c,h,w] -> [n,c,p,q].
ValueId AvgPool(Builder& b, ValueId x, const AvgPoolAttrs& attrs);

// The windows of a pooled image of height x width, for kernels.
class AvgWindows {
 public:
  AvgWindows(const AvgPoolAttrs& attrs, int64_t height, int64_t width);

  // The rows (d = 0) or columns (d = 1) that output place `o` sees.
  constexpr PixelRange Inside(size_t d, int64_t o) const { return window_.Inside(d, o, size_[d]); }
  // Of `outputs` output places those that see the image's `place`.
  constexpr PixelRange Seeing(size_t d, int64_t place, int64_t outputs) const {
    return window_.Seeing(d, place, outputs);
  }
  // By what the sum at (p,q) is divided.
  constexpr int64_t Divisor(int64_t p, int64_t q) const { return Counted(0, p) * Counted(1, q); }

 private:
  constexpr int64_t Counted(size_t d, int64_t o) const {
    if (exclusive_) return Inside(d, o).size();
    const int64_t begin = window_.Begin(d, o);
    return std::min(begin + window_.kernel[d], size_[d] + window_.padding[d]) - begin;
  }

  Window window_;
  std::array<int64_t, 2> size_;
  bool exclusive_;
};

std::vector<const OpDef*> AvgPoolRows();
std::vector<KernelRow> AvgPoolReferenceKernels();
std::vector<KernelRow> AvgPoolFastKernels();
std::vector<KernelRow> AvgPoolCudaKernels();  // in builds with CUDA

}  // namespace capstan
