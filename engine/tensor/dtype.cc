#include "engine/tensor/dtype.h"

#include <limits>

#include "engine/base/check.h"

namespace capstan {
namespace {

struct Row {
  DType dtype;
  const char* name;
  size_t size;
  double epsilon;
};

constexpr Row kRows[] = {
    {DType::kF64, "f64", 8, std::numeric_limits<double>::epsilon()},
    {DType::kF32, "f32", 4, std::numeric_limits<float>::epsilon()},
    {DType::kF16, "f16", 2, 0x1p-10},
    {DType::kBF16, "bf16", 2, 0x1p-7},
    {DType::kI64, "i64", 8, 0},
    {DType::kI32, "i32", 4, 0},
    {DType::kU8, "u8", 1, 0},
    {DType::kBool, "bool", 1, 0},
    {DType::kOpaque, "opaque", 1, 0},
};

const Row& RowOf(DType dtype) {
  const Row& row = kRows[static_cast<size_t>(dtype)];
  CHECK(row.dtype == dtype) << "dtype table is out of order";
  return row;
}

}  // namespace

size_t SizeOf(DType dtype) { return RowOf(dtype).size; }

const char* NameOf(DType dtype) { return RowOf(dtype).name; }

double EpsilonOf(DType dtype) { return RowOf(dtype).epsilon; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace capstan
