// What the optimizers' kernels share: scalars that lie in device memory, so that a recorded update
// reads the learning rate of its own iteration.
#pragma once

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
  return {.op = op,
          .device = DeviceKind::kCuda,
          .impl = "cuda",
          .priority = 10,
          .dtypes = {DType::kF32, DType::kF64},
          .fn = fn};
}

// Calls f with a zero of the bucket's type.
template <typename F>
void ForUpdateFloat(DType dtype, F&& f) {
  if (dtype == DType::kF64) return f(double{});
  f(float{});
}

}  // namespace capstan
