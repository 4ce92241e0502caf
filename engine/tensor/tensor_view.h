// TensorView: a pointer and a type. Owns nothing; the memory must outlive it.
#pragma once

#include <cstring>
#include <memory>
#include <span>

#include "engine/base/check.h"
#include "engine/tensor/tensor_type.h"

namespace capstan {

struct TensorView {
  void* data = nullptr;
  TensorType type;

  // An optional argument that was not given.
  bool absent() const { return data == nullptr && type.count() != 0; }

  template <typename T>
  T* Data() const {
    CHECK(type.dtype == DTypeOf<T>()) << "tensor holds " << NameOf(type.dtype);
    return static_cast<T*>(data);
  }
  // All elements in memory order (not logical order for channels_last).
  template <typename T>
  std::span<T> Elements() const {
    return {Data<T>(), static_cast<size_t>(type.count())};
  }
};

// Host memory with a type, 64-byte aligned, zeroed at birth. Movable, not copyable.
class HostTensor {
 public:
  HostTensor() = default;
  explicit HostTensor(const TensorType& type);

  TensorView view() const { return {data_.get(), type_}; }
  const TensorType& type() const { return type_; }
  void* data() const { return data_.get(); }
  template <typename T>
  std::span<T> Elements() const {
    return view().Elements<T>();
  }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  TensorType type_;
  std::unique_ptr<void, Free> data_;
};

// Copies `from` into `to` (equal shapes and dtypes), reordering where the memory formats differ.
void CopyTensor(const TensorView& from, const TensorView& to);

}  // namespace capstan
