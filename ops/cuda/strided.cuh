// Shapes and strides on the device, for kernels that walk by logical index.
//
//   const DeviceShape shape(view.type.shape);
//   const DeviceStrides x(inputs[0].type);
//   ... y[i] = x_data[x.At(shape, i)];   // element i of `shape` in row-major order
#pragma once

#include "engine/tensor/tensor_type.h"

namespace capstan {

struct DeviceShape {
  int ndim = 0;
  int64_t size[Shape::kMaxNdim] = {};

  DeviceShape() = default;
  explicit DeviceShape(const Shape& shape) : ndim(shape.ndim()) {
    for (int d = 0; d < ndim; ++d) size[d] = shape[d];
  }
};

// Distances in elements; 0 along dimensions that repeat.
struct DeviceStrides {
  int64_t stride[Shape::kMaxNdim] = {};

  DeviceStrides() = default;
  explicit DeviceStrides(const TensorType& type) {
    const auto strides = type.Strides();
    for (int d = 0; d < type.ndim(); ++d) stride[d] = strides[static_cast<size_t>(d)];
  }

  // The place in memory of the shape's element `i`, counted with the last dimension fastest.
  __host__ __device__ int64_t At(const DeviceShape& shape, int64_t i) const {
    int64_t at = 0;
    for (int d = shape.ndim - 1; d >= 0; --d) {
      at += i % shape.size[d] * stride[d];
      i /= shape.size[d];
    }
    return at;
  }
};

}  // namespace capstan
