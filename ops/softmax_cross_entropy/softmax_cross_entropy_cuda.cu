// CUDA kernels.
#include "ops/cuda/softmax.cuh"
#include "ops/softmax_cross_entropy/softmax_cross_entropy.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

// What the softmax of a sample should be: a class number or a probability of every class.
template <typename T>
struct Targets {
  const void* labels;
  DType dtype;  // of integers, or T's: probabilities
  int64_t classes, ignore_index;
  double smoothing;

  Targets(const TensorView& view, int64_t k, const SoftmaxCrossEntropyAttrs& attrs)
      : labels(view.data),
        dtype(view.type.dtype),
        classes(k),
        ignore_index(attrs.ignore_index),
        smoothing(attrs.label_smoothing) {}

  __device__ bool hard() const {
    return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kU8;
  }
  __device__ int64_t Class(int64_t sample) const {
    if (dtype == DType::kI64) return static_cast<const int64_t*>(labels)[sample];
    if (dtype == DType::kI32) return static_cast<const int32_t*>(labels)[sample];
    return static_cast<const uint8_t*>(labels)[sample];
  }
  __device__ bool Ignored(int64_t sample) const { return hard() && Class(sample) == ignore_index; }
  __device__ bool Invalid(int64_t sample) const {
    return hard() && (Class(sample) < 0 || Class(sample) >= classes);
  }
  __device__ Wide<T> At(int64_t sample, int64_t k) const {
    const auto target = hard() ? static_cast<Wide<T>>(Class(sample) == k)
                               : Load(static_cast<const T*>(labels)[sample * classes + k]);
    return static_cast<Wide<T>>(1 - smoothing) * target +
           static_cast<Wide<T>>(smoothing / static_cast<double>(classes));
  }
};

// Grid: a warp for each sample.
template <typename T>
__global__ void Losses(int64_t samples, Targets<T> targets, const T* logits, T* losses) {
  const int64_t sample = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (sample >= samples) return;
  const T* row = logits + sample * targets.classes;
  Wide<T> loss = 0;
  if (targets.Ignored(sample)) {
    loss = 0;
  } else if (targets.Invalid(sample)) {
    loss = static_cast<Wide<T>>(nan(""));
  } else {
    const auto parts = SoftmaxPartsOf(row, targets.classes);
    const Wide<T> log_sum = log(parts.sum);
    for (int64_t k = lane; k < targets.classes; k += kWarp) {
      const Wide<T> q = targets.At(sample, k);
      // A class of no weight counts for nothing, though its logit be minus infinity.
      if (q != 0) loss += q * (parts.greatest - Load(row[k]) + log_sum);
    }
    loss = WarpSum(loss);
  }
  if (lane == 0) losses[sample] = Store<T>(loss);
}

// Grid: a warp for each sample.
template <typename T>
__global__ void Gradients(int64_t samples, Targets<T> targets, const T* dlosses, const T* logits,
                          T* dlogits) {
  const int64_t sample = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (sample >= samples) return;
  const T* row = logits + sample * targets.classes;
  T* to = dlogits + sample * targets.classes;
  if (targets.Ignored(sample) || targets.Invalid(sample)) {
    const T value = targets.Ignored(sample) ? Store<T>(0) : Store<T>(nan(""));
    for (int64_t k = lane; k < targets.classes; k += kWarp) to[k] = value;
    return;
  }
  const auto parts = SoftmaxPartsOf(row, targets.classes);
  const Wide<T> dloss = Load(dlosses[sample]);
  Wide<T> total = 0;
  for (int64_t k = lane; k < targets.classes; k += kWarp) total += targets.At(sample, k);
  total = WarpSum(total);
  for (int64_t k = lane; k < targets.classes; k += kWarp) {
    const Wide<T> p = exp(Load(row[k]) - parts.greatest) / parts.sum;
    to[k] = Store<T>(dloss * (total * p - targets.At(sample, k)));
  }
}

dim3 WarpPerSample(int64_t samples) {
  return static_cast<unsigned>((samples * kWarp + kBlock - 1) / kBlock);
}

void LossKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const Shape& shape = inputs[0].type.shape;
  ForCudaFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Targets<T> targets(inputs[1], shape[1], any.As<SoftmaxCrossEntropyAttrs>());
    Launch(context, WarpPerSample(shape[0]), kBlock, Losses<T>, shape[0], targets,
           CudaData<const T>(inputs[0]), CudaData<T>(outputs[0]));
  });
}

void GradKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const Shape& shape = inputs[1].type.shape;
  ForCudaFloat(inputs[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Targets<T> targets(inputs[2], shape[1], any.As<SoftmaxCrossEntropyAttrs>());
    Launch(context, WarpPerSample(shape[0]), kBlock, Gradients<T>, shape[0], targets,
           CudaData<const T>(inputs[0]), CudaData<const T>(inputs[1]), CudaData<T>(outputs[0]));
  });
}

}  // namespace

std::vector<KernelRow> SoftmaxCrossEntropyCudaKernels() {
  return {CudaRow("softmax_cross_entropy", LossKernel),
          CudaRow("softmax_cross_entropy_grad", GradKernel)};
}

}  // namespace capstan
