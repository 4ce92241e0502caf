#include "engine/weights/stored_tensor.h"

#include <algorithm>

namespace capstan {
namespace {

// More elements than any file holds; sums of a few such numbers cannot wrap.
constexpr int64_t kMaxElements = int64_t{1} << 48;

// stride · size, or a stride that ReachOf refuses.
int64_t Product(int64_t stride, int64_t size) {
  int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &product);
  return overflow ? kMaxElements + 1 : product;
}

}  // namespace

const ElementRow* ElementOfNumpy(std::string_view code) {
  const ElementRow* row = std::find_if(std::begin(kElementRows), std::end(kElementRows),
                                       [&](const ElementRow& r) { return code == r.numpy; });
  return row == std::end(kElementRows) ? nullptr : row;
}

const ElementRow* ElementOfTorch(std::string_view storage) {
  const ElementRow* row = std::find_if(std::begin(kElementRows), std::end(kElementRows),
                                       [&](const ElementRow& r) { return storage == r.torch; });
  return row == std::end(kElementRows) ? nullptr : row;
}

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = Product(strides[i], dims[i]);
  return strides;
}

std::vector<int64_t> ColumnMajorStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = 1; i < dims.size(); ++i) strides[i] = Product(strides[i - 1], dims[i - 1]);
  return strides;
}

std::optional<int64_t> ReachOf(const StoredTensor& tensor) {
  int64_t count = 1, last = tensor.start;
  if (tensor.start < 0 || tensor.start > kMaxElements) return std::nullopt;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const int64_t size = tensor.dims[i], stride = tensor.strides[i];
    if (size < 0 || size > kMaxElements || stride < 0 || stride > kMaxElements) return std::nullopt;
    int64_t span = 0;
    if (__builtin_mul_overflow(count, size, &count) || count > kMaxElements ||
        __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &span) ||
        __builtin_add_overflow(last, span, &last) || last > kMaxElements) {
      return std::nullopt;
    }
  }
  return count == 0 ? 0 : last + 1;
}

}  // namespace capstan
