#include "engine/tensor/tensor_view.h"

#include <new>

namespace capstan {
namespace {

constexpr size_t kAlignment = 64;

template <size_t kSize>
void CopyStrided(const TensorView& from, const TensorView& to) {
  const Shape& s = from.type.shape;
  CHECK_EQ(s.ndim(), 4) << "only 4-d tensors differ in memory format";
  const auto fs = from.type.Strides(), ts = to.type.Strides();
  const auto* f = static_cast<const char*>(from.data);
  auto* t = static_cast<char*>(to.data);
  for (int64_t a = 0; a < s[0]; ++a) {
    for (int64_t b = 0; b < s[1]; ++b) {
      for (int64_t c = 0; c < s[2]; ++c) {
        for (int64_t d = 0; d < s[3]; ++d) {
          const int64_t fo = a * fs[0] + b * fs[1] + c * fs[2] + d * fs[3];
          const int64_t to_offset = a * ts[0] + b * ts[1] + c * ts[2] + d * ts[3];
          std::memcpy(t + to_offset * static_cast<int64_t>(kSize),
                      f + fo * static_cast<int64_t>(kSize), kSize);
        }
      }
    }
  }
}

}  // namespace

void HostTensor::Free::operator()(void* p) const {
  ::operator delete (p, std::align_val_t{kAlignment});
}

HostTensor::HostTensor(const TensorType& type) : type_(type) {
  const size_t bytes =
      (static_cast<size_t>(type.bytes()) + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(::operator new (bytes, std::align_val_t{kAlignment}));
  std::memset(data_.get(), 0, bytes);
}

void CopyTensor(const TensorView& from, const TensorView& to) {
  CHECK(from.type.shape == to.type.shape && from.type.dtype == to.type.dtype)
      << from.type.ToString() << " into " << to.type.ToString();
  if (SameOrder(from.type, to.type)) {
    std::memcpy(to.data, from.data, static_cast<size_t>(from.type.bytes()));
    return;
  }
  switch (SizeOf(from.type.dtype)) {
    case 1:
      return CopyStrided<1>(from, to);
    case 2:
      return CopyStrided<2>(from, to);
    case 4:
      return CopyStrided<4>(from, to);
    case 8:
      return CopyStrided<8>(from, to);
    default:
      CHECK(false) << "element size";
  }
}

}  // namespace capstan
