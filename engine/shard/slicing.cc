#include "engine/shard/slicing.h"

#include <cstring>
#include <vector>

#include "engine/base/check.h"

namespace capstan {
namespace {

// Calls f(byte offset in whole, byte offset in part) for every element of the part.
class PartWalk {
 public:
  PartWalk(const TensorType& whole, const ArgPart& which, const TensorType& part)
      : which_(which),
        shape_(part.shape),
        whole_strides_(whole.Strides()),
        part_strides_(part.Strides()),
        size_(static_cast<int64_t>(SizeOf(part.dtype))) {
    for (const Range& range : which.ranges) {
      for (int64_t i = 0; i < range.length; ++i) positions_.push_back(range.offset + i);
    }
    if (which.dim >= 0) {
      CHECK_EQ(static_cast<int64_t>(positions_.size()), shape_[which.dim]);
    } else {
      CHECK(shape_ == whole.shape) << "a whole argument has all elements";
    }
  }

  template <typename F>
  void Run(F&& f, int dim = 0, int64_t in_whole = 0, int64_t in_part = 0) const {
    if (dim == shape_.ndim()) return f(in_whole * size_, in_part * size_);
    const auto d = static_cast<size_t>(dim);
    for (int64_t i = 0; i < shape_[dim]; ++i) {
      const int64_t at = dim == which_.dim ? positions_[static_cast<size_t>(i)] : i;
      Run(f, dim + 1, in_whole + at * whole_strides_[d], in_part + i * part_strides_[d]);
    }
  }

 private:
  const ArgPart& which_;
  const Shape& shape_;
  const std::array<int64_t, Shape::kMaxNdim> whole_strides_, part_strides_;
  const int64_t size_;
  std::vector<int64_t> positions_;  // in the whole, of the part's indices along the cut dimension
};

template <typename T>
T Combined(Combine combine, T a, T b) {
  switch (combine) {
    case Combine::kSum:
      return static_cast<T>(a + b);
    // A NaN on either side stays.
    case Combine::kMax:
      return a != a || a > b ? a : b;
    case Combine::kMin:
      return a != a || a < b ? a : b;
    case Combine::kOr:
      return static_cast<T>(a != T{} || b != T{});
  }
  return a;
}

template <typename T>
void CombineAll(const TensorView& part, Combine combine, const TensorView& total) {
  const std::span<T> from = part.Elements<T>(), to = total.Elements<T>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = Combined<T>(combine, to[i], from[i]);
}

}  // namespace

void CopyPart(const TensorView& whole, const ArgPart& which, const TensorView& part) {
  PartWalk(whole.type, which, part.type).Run([&](int64_t in_whole, int64_t in_part) {
    std::memcpy(static_cast<char*>(part.data) + in_part,
                static_cast<const char*>(whole.data) + in_whole, SizeOf(part.type.dtype));
  });
}

void PlacePart(const TensorView& part, const ArgPart& which, const TensorView& whole) {
  PartWalk(whole.type, which, part.type).Run([&](int64_t in_whole, int64_t in_part) {
    std::memcpy(static_cast<char*>(whole.data) + in_whole,
                static_cast<const char*>(part.data) + in_part, SizeOf(part.type.dtype));
  });
}

void CombinePart(const TensorView& part, Combine combine, const TensorView& total) {
  CHECK(part.type == total.type) << part.type.ToString() << " into " << total.type.ToString();
  switch (total.type.dtype) {
    case DType::kF64:
      return CombineAll<double>(part, combine, total);
    case DType::kF32:
      return CombineAll<float>(part, combine, total);
    case DType::kI64:
      return CombineAll<int64_t>(part, combine, total);
    case DType::kI32:
      return CombineAll<int32_t>(part, combine, total);
    case DType::kU8:
      return CombineAll<uint8_t>(part, combine, total);
    case DType::kBool:
      return CombineAll<bool>(part, combine, total);
    default:
      CHECK(false) << "parts of " << NameOf(total.type.dtype) << " cannot be combined";
  }
}

}  // namespace capstan
