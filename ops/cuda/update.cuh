// What the optimizers' kernels share: scalars that lie in device memory, so that a recorded update
// reads the learning rate of its own iteration.
#pragma once

#include "engine/kernel/strided.h"
#include "ops/cuda/launch.cuh"

namespace capstan {

// f32 or f64; one that was not given is 1.
struct DeviceScalar {
  const void* data = nullptr;
  bool wide = false;

  DeviceScalar() = default;
  explicit DeviceScalar(const TensorView& view)
      : data(view.data), wide(view.type.dtype == DType::kF64) {}
  // Optional input `i`.
  DeviceScalar(std::span<const TensorView> inputs, size_t i)
      : DeviceScalar(i < inputs.size() ? inputs[i] : TensorView{}) {}

  __device__ double Read() const {
    if (data == nullptr) return 1;
    return wide ? *static_cast<const double*>(data) : *static_cast<const float*>(data);
  }
};

inline KernelRow UpdateCudaRow(const char* op, KernelFn fn) {
  KernelRow row = CudaRow(op, fn);
  row.dtypes = {DType::kF32, DType::kF64};
  return row;
}

}  // namespace capstan
