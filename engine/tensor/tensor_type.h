// Shape, memory format and type of a tensor. Plain values; compare, copy and print freely.
//
//   TensorType t{DType::kF32, {8, 3, 32, 32}};
//   t.format = MemoryFormat::kChannelsLast;
//   t.ToString();                      // "f32[8,3,32,32]{channels_last}"
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/check.h"
#include "engine/tensor/dtype.h"

namespace capstan {

// Up to kMaxNdim sizes, outermost first. A scalar has ndim 0 and one element.
class Shape {
 public:
  static constexpr int kMaxNdim = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) { Assign({dims.begin(), dims.size()}); }
  explicit Shape(std::span<const int64_t> dims) { Assign(dims); }
  explicit Shape(const std::vector<int64_t>& dims) { Assign(dims); }

  int ndim() const { return ndim_; }
  int64_t operator[](int i) const { return dims_[CheckedIndex(i)]; }
  int64_t& operator[](int i) { return dims_[CheckedIndex(i)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(ndim_)}; }
  std::vector<int64_t> ToVector() const { return {dims_.begin(), dims_.begin() + ndim_}; }
  void Append(int64_t size) {
    CHECK(ndim_ < kMaxNdim) << "more than " << kMaxNdim << " dimensions";
    dims_[ndim_++] = size;
  }

  // Number of elements.
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t d : dims()) n *= d;
    return n;
  }
  // "[8,3,32,32]"
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.ndim_ == b.ndim_ && std::equal(a.dims().begin(), a.dims().end(), b.dims().begin());
  }

 private:
  void Assign(std::span<const int64_t> dims) {
    CHECK(dims.size() <= static_cast<size_t>(kMaxNdim)) << dims.size() << " dimensions";
    for (const int64_t d : dims) dims_[ndim_++] = d;
  }
  size_t CheckedIndex(int i) const {
    CHECK(i >= 0 && i < ndim_) << "dimension " << i << " of " << ndim_;
    return static_cast<size_t>(i);
  }

  std::array<int64_t, kMaxNdim> dims_{};
  int ndim_ = 0;
};

// Order of a tensor's elements in memory; the logical shape is the same for both.
// kPlain: row-major. kChannelsLast: 4-d tensors (n,c,h,w) stored as n,h,w,c (cuDNN's and oneDNN's
// fast order; a filter (o,i,y,x) is stored o,y,x,i).
enum class MemoryFormat : uint8_t { kPlain, kChannelsLast };

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  MemoryFormat format = MemoryFormat::kPlain;

  int64_t count() const { return shape.count(); }
  int64_t bytes() const { return count() * static_cast<int64_t>(SizeOf(dtype)); }
  int ndim() const { return shape.ndim(); }
  // Distance in elements between neighbours along each dimension.
  std::array<int64_t, Shape::kMaxNdim> Strides() const;
  std::string ToString() const;

  friend bool operator==(const TensorType& a, const TensorType& b) = default;
};

// Parses ToString's form from the start of *text and removes it.
absl::Status ParseTensorType(std::string_view* text, TensorType* out);

// True where both formats mean the same order of bytes (fewer than 4 dimensions, or all but one of
// the moved dimensions have size 1).
bool SameOrder(const TensorType& a, const TensorType& b);

}  // namespace capstan
