#include "ops/op_suite/host_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/status.h"
#include "engine/kernel/strided.h"
#include "engine/tensor/half.h"

namespace capstan {
namespace {

// Calls f with a value of the C++ type.
template <typename F>
void ForElementType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f(double{});
    case DType::kF32:
      return f(float{});
    case DType::kF16:
      return f(Half{});
    case DType::kBF16:
      return f(BFloat16{});
    case DType::kI64:
      return f(int64_t{});
    case DType::kI32:
      return f(int32_t{});
    case DType::kU8:
      return f(uint8_t{});
    case DType::kBool:
      return f(bool{});
    case DType::kOpaque:
      CHECK(false) << "opaque bytes have no values";
  }
}

template <typename T>
double ToDouble(T value) {
  if constexpr (std::is_class_v<T>) {
    return value.ToFloat();
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_class_v<T>) {
    return T::From(value);
  } else {
    return static_cast<T>(value);
  }
}

std::string IndexText(const Shape& shape, int64_t at) {
  Shape index = shape;
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    index[d] = at % shape[d];
    at /= shape[d];
  }
  return index.ToString();
}

double LargestFinite(std::span<const double> values) {
  double largest = 0;
  for (const double v : values) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  return largest;
}

}  // namespace

std::vector<double> ValuesOf(const TensorView& view) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(view.type.count()));
  ForElementType(view.type.dtype, [&](auto zero) {
    const Strided<decltype(zero)> from(view);
    ForEachIndex(view.type.shape, [&](const Index& i) { values.push_back(ToDouble(from(i))); });
  });
  return values;
}

void SetValues(const TensorView& view, std::span<const double> values) {
  CHECK_EQ(static_cast<int64_t>(values.size()), view.type.count()) << view.type.ToString();
  ForElementType(view.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<T> to(view);
    size_t next = 0;
    ForEachIndex(view.type.shape, [&](const Index& i) { to(i) = FromDouble<T>(values[next++]); });
  });
}

HostTensor Converted(const TensorView& from, const TensorType& type) {
  HostTensor to(type);
  SetValues(to.view(), ValuesOf(from));
  return to;
}

absl::Status CompareValues(const std::string& name, const TensorView& got, const TensorView& want,
                           double tolerance) {
  if (got.type.shape != want.type.shape) {
    return InvalidArgument("{}: {} instead of {}", name, got.type.ToString(), want.type.ToString());
  }
  const std::vector<double> g = ValuesOf(got), w = ValuesOf(want);
  const double limit = IsFloat(got.type.dtype) ? tolerance * (LargestFinite(w) + 0.01) : 0;
  for (size_t i = 0; i < w.size(); ++i) {
    // Equal infinities have no difference; a NaN fails every comparison.
    if (g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i]))) continue;
    if (std::abs(g[i] - w[i]) <= limit) continue;
    return InvalidArgument("{}: element {} is {} but should be {} (tolerance {})", name,
                           IndexText(want.type.shape, static_cast<int64_t>(i)), g[i], w[i], limit);
  }
  return absl::OkStatus();
}

}  // namespace capstan
