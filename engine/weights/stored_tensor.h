// StoredTensor: where a tensor of a weights file lies and how to read it, whatever wrote the file.
//
// Readers of formats (torch_file.h, paddle_file.h) make them; sizes and places have been checked
// against the file, so reading one touches bytes within `data` only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/dtype.h"
#include "engine/weights/byte_source.h"

namespace capstan {

// An element type as the formats name it.
struct ElementRow {
  const char* numpy;  // "f4"
  const char* torch;  // of the storage class: "FloatStorage"
  size_t size;
  std::optional<DType> dtype;  // none: known to the formats, not to us
};

// NumPy has no bfloat16: Paddle saves its bits as u2.
inline constexpr ElementRow kElementRows[] = {
    {"f8", "DoubleStorage", 8, DType::kF64}, {"f4", "FloatStorage", 4, DType::kF32},
    {"f2", "HalfStorage", 2, DType::kF16},   {"u2", "BFloat16Storage", 2, DType::kBF16},
    {"i8", "LongStorage", 8, DType::kI64},   {"i4", "IntStorage", 4, DType::kI32},
    {"u1", "ByteStorage", 1, DType::kU8},    {"b1", "BoolStorage", 1, DType::kBool},
    {"i2", "ShortStorage", 2, {}},           {"i1", "CharStorage", 1, {}},
    {"c8", "ComplexFloatStorage", 8, {}},    {"c16", "ComplexDoubleStorage", 16, {}},
};
// Null for what is not in the table.
const ElementRow* ElementOfNumpy(std::string_view code);
const ElementRow* ElementOfTorch(std::string_view storage);

struct StoredTensor {
  std::string name;
  const ElementRow* element = nullptr;  // null: a type that cannot be read
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // elements, never negative
  int64_t start = 0;             // element of `data` that is the tensor's first
  ByteRange data;
  // The bytes were made text, one character (0 to 255) each, and stored as UTF-8.
  bool latin1 = false;
};

// Strides of a row-major tensor; of a column-major one.
std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& dims);
std::vector<int64_t> ColumnMajorStrides(const std::vector<int64_t>& dims);

// Elements of `data` that the tensor reaches: the index after the last one, 0 for an empty tensor.
// None where sizes are negative or beyond what a file could hold.
std::optional<int64_t> ReachOf(const StoredTensor& tensor);

}  // namespace capstan
