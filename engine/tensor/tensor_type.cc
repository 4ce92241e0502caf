#include "engine/tensor/tensor_type.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/base/status.h"

namespace capstan {

std::string Shape::ToString() const { return fmt::format("[{}]", fmt::join(dims(), ",")); }

std::array<int64_t, Shape::kMaxNdim> TensorType::Strides() const {
  std::array<int64_t, Shape::kMaxNdim> strides{};
  if (format == MemoryFormat::kChannelsLast) {
    CHECK_EQ(ndim(), 4) << "channels_last is for 4-d tensors: " << shape.ToString();
    const int64_t c = shape[1], h = shape[2], w = shape[3];
    strides = {h * w * c, 1, w * c, c};
    return strides;
  }
  int64_t stride = 1;
  for (int i = ndim() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::string TensorType::ToString() const {
  return NameOf(dtype) + shape.ToString() +
         (format == MemoryFormat::kChannelsLast ? "{channels_last}" : "");
}

absl::Status ParseTensorType(std::string_view* text, TensorType* out) {
  const std::string_view whole = *text;
  const auto fail = [&] {
    return InvalidArgument("expected a type such as f32[8,3], found '{}'", whole.substr(0, 24));
  };
  const size_t open = text->find('[');
  if (open == std::string_view::npos) return fail();
  const auto dtype = DTypeFromName(text->substr(0, open));
  if (!dtype) return fail();
  *out = TensorType{.dtype = *dtype};
  text->remove_prefix(open + 1);
  while (!text->empty() && text->front() != ']') {
    int64_t size = 0;
    const auto r = std::from_chars(text->data(), text->data() + text->size(), size);
    if (r.ec != std::errc() || size < 0 || out->ndim() == Shape::kMaxNdim) return fail();
    out->shape.Append(size);
    text->remove_prefix(static_cast<size_t>(r.ptr - text->data()));
    if (!text->empty() && text->front() == ',') text->remove_prefix(1);
  }
  if (text->empty()) return fail();
  text->remove_prefix(1);
  constexpr std::string_view kLast = "{channels_last}";
  if (text->substr(0, kLast.size()) == kLast) {
    if (out->ndim() != 4) return fail();
    out->format = MemoryFormat::kChannelsLast;
    text->remove_prefix(kLast.size());
  }
  return absl::OkStatus();
}

bool SameOrder(const TensorType& a, const TensorType& b) {
  if (!(a.shape == b.shape)) return false;
  if (a.format == b.format) return true;
  const auto sa = a.Strides(), sb = b.Strides();
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.shape[i] != 1 && sa[static_cast<size_t>(i)] != sb[static_cast<size_t>(i)]) return false;
  }
  return true;
}

}  // namespace capstan
