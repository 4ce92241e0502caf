// CUDA kernels.
#include "engine/kernel/flat.h"
#include "ops/cast/cast.h"
#include "ops/cuda/launch.cuh"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

template <typename From, typename To>
__global__ void CastElements(int64_t n, const From* x, To* y) {
  ForEachOnGrid(n, [&](int64_t i) {
    // float holds every value of the narrower types.
    if constexpr (sizeof(From) < sizeof(double) && sizeof(To) < sizeof(double)) {
      y[i] = static_cast<To>(static_cast<float>(x[i]));
    } else {
      y[i] = static_cast<To>(static_cast<double>(x[i]));
    }
  });
}

void CastKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
  const TensorView &x = inputs[0], &y = outputs[0];
  const int64_t n = y.type.count();
  ForCudaFloat(y.type.dtype, [&](auto to) {
    using To = decltype(to);
    const auto cast = [&](auto from) {
      using From = decltype(from);
      Launch(context, BlocksFor(n), kBlock, CastElements<From, To>, n, CudaData<const From>(x),
             CudaData<To>(y));
    };
    if (x.type.dtype == DType::kU8) return cast(uint8_t{});
    ForCudaFloat(x.type.dtype, cast);
  });
}

// Between floats, and pictures to floats.
bool SupportsCast(const OpCall& call) {
  const DType from = call.In(0).dtype;
  return (IsFloat(from) || from == DType::kU8) && IsFloat(call.Out(0).dtype) && InOneOrder(call);
}

}  // namespace

std::vector<KernelRow> CastCudaKernels() {
  KernelRow row = CudaRow("cast", CastKernel);
  row.supports = SupportsCast;
  return {row};
}

}  // namespace capstan
