// Dropout: in training every element is set to zero with probability `rate`, the others are divided
// by 1 - rate. Source: Srivastava et al., JMLR 15, 2014 ("inverted" form).
//
// Draws are indexed by the place in the whole update, (sample, position) where dimension 0 counts
// samples, so the mask depends neither on how the update is cut into batches and slices nor on
// memory order and threads. The backward pass is the same row applied to dy.
//
//   x = Dropout(b, x, options.dropout);
#pragma once

#include <string>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

struct DropoutAttrs {
  double rate = 0.5;
  std::string stream;

  static constexpr auto Fields() {
    return std::array{Field<&DropoutAttrs::rate>("rate", "share of the elements set to zero, < 1",
                                                 Bounds{.min = 0, .max = 1}),
                      Field<&DropoutAttrs::stream>("stream", "name of the random numbers")};
  }
};

extern const OpDef kDropout;

// Any shape; x itself in evaluation and at rate 0. Dimension 0 must be the sample.
ValueId Dropout(Builder& b, ValueId x, double rate);

// Which elements of a dropout's output survive. What is constexpr works on a GPU too.
class DropoutMask {
 public:
  DropoutMask(const KernelContext& context, const DropoutAttrs& attrs, const Shape& shape);

  // Makes it the mask of another run of the same program.
  constexpr void MoveTo(const RunValues& values) {
    key_ = RandomKey(values.random_key).Mix(stream_);
    first_ = slice_ + static_cast<uint64_t>(values.sample_offset * per_sample_);
  }

  constexpr bool Keeps(uint64_t draw) const {
    return KeepsUpperBits(static_cast<uint32_t>(key_.Bits(draw) >> 32));
  }
  // The draw of the slice's first element.
  constexpr uint64_t first() const { return first_; }
  // The draw of an element whose index in this slice is given, by dimension.
  template <typename IndexT>
  uint64_t DrawOf(const IndexT& index) const {
    uint64_t draw = first_;
    for (size_t d = 0; d < static_cast<size_t>(ndim_); ++d) {
      draw += static_cast<uint64_t>(index[d] * strides_[d]);
    }
    return draw;
  }
  constexpr double scale() const { return scale_; }
  // For kernels that draw many at a time: see RandomKey::UpperBits.
  const RandomKey& key() const { return key_; }
  constexpr bool KeepsUpperBits(uint32_t bits) const { return bits >> 8 >= threshold_; }
  // Distance in draws between neighbours along a dimension.
  int64_t stride(int d) const { return strides_[static_cast<size_t>(d)]; }

 private:
  uint64_t stream_;     // hash of its name
  uint32_t threshold_;  // of 24 random bits
  double scale_;        // 1 / (1 - rate)
  int ndim_;
  int64_t per_sample_;  // draws
  uint64_t slice_;      // draws before the slice, in a run without samples before
  RandomKey key_{0};
  uint64_t first_ = 0;
  std::array<int64_t, Shape::kMaxNdim> strides_;  // in draws
};

std::vector<const OpDef*> DropoutRows();
std::vector<KernelRow> DropoutReferenceKernels();
std::vector<KernelRow> DropoutFastKernels();
std::vector<KernelRow> DropoutCudaKernels();  // in builds with CUDA

}  // namespace capstan
