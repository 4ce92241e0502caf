// For reference kernels: elements by logical index, whatever the memory format, and a loop over all
// indices of a shape.
//
//   Strided<const float> x(inputs[0]);
//   ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = std::max(x(i), 0.f); });
#pragma once

#include <array>
#include <cstdint>

#include "engine/tensor/tensor_view.h"

namespace capstan {

using Index = std::array<int64_t, Shape::kMaxNdim>;

template <typename T>
class Strided {
 public:
  explicit Strided(const TensorView& view)
      : data_(view.data == nullptr ? nullptr : view.Data<std::remove_const_t<T>>()),
        strides_(view.type.Strides()),
        ndim_(view.type.ndim()) {}

  bool present() const { return data_ != nullptr; }
  T& operator()(const Index& index) const {
    int64_t at = 0;
    for (int d = 0; d < ndim_; ++d)
      at += index[static_cast<size_t>(d)] * strides_[static_cast<size_t>(d)];
    return data_[at];
  }
  // By up to four subscripts.
  T& operator()(int64_t a, int64_t b = 0, int64_t c = 0, int64_t d = 0) const {
    return data_[a * strides_[0] + b * strides_[1] + c * strides_[2] + d * strides_[3]];
  }

 private:
  T* data_;
  std::array<int64_t, Shape::kMaxNdim> strides_;
  int ndim_;
};

// Calls f(index) for every index of the shape, the last dimension fastest.
template <typename F>
void ForEachIndex(const Shape& shape, F&& f) {
  Index index{};
  const int64_t count = shape.count();
  for (int64_t i = 0; i < count; ++i) {
    f(index);
    for (int d = shape.ndim() - 1; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < shape[d]) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
}

// Calls f with a value of the C++ type of a float tensor: ForFloat(dtype, [&](auto zero) { using T
// = decltype(zero); ... }). Reference kernels know f32 and f64.
template <typename F>
void ForFloat(DType dtype, F&& f) {
  if (dtype == DType::kF64) {
    f(double{});
  } else {
    CHECK(dtype == DType::kF32) << "reference kernel for " << NameOf(dtype);
    f(float{});
  }
}

}  // namespace capstan
