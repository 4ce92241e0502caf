// Reference kernels: plain loops in logical order. "Outer" indices are those of the reduced tensor,
// "inner" ones run over the reduced dimensions.
#include <cmath>

#include "engine/kernel/strided.h"
#include "ops/reduce/reduce.h"

namespace capstan {
namespace {

class Reduction {
 public:
  Reduction(const Shape& x, const std::vector<int64_t>& axes, bool keep_dims)
      : reduced_(ReducedDims(axes, x.ndim())), keep_dims_(keep_dims) {
    for (int d = 0; d < x.ndim(); ++d) {
      if (reduced_[static_cast<size_t>(d)]) inner_.Append(x[d]);
    }
  }

  const Shape& inner() const { return inner_; }

  // The index of x.
  Index At(const Index& outer, const Index& inner) const {
    Index at{};
    size_t from_outer = 0, from_inner = 0;
    for (size_t d = 0; d < reduced_.size(); ++d) {
      at[d] = reduced_[d] ? inner[from_inner++] : outer[from_outer];
      from_outer += !reduced_[d] || keep_dims_ ? 1 : 0;
    }
    return at;
  }

  // The index of the reduced tensor.
  Index Outer(const Index& at) const {
    Index outer{};
    size_t next = 0;
    for (size_t d = 0; d < reduced_.size(); ++d) {
      if (!reduced_[d]) outer[next] = at[d];
      next += !reduced_[d] || keep_dims_ ? 1 : 0;
    }
    return outer;
  }

 private:
  std::vector<bool> reduced_;
  bool keep_dims_;
  Shape inner_;
};

Reduction ReductionOf(const Shape& x, const AnyStruct& any) {
  const auto& attrs = any.As<ReduceAttrs>();
  return Reduction(x, attrs.axes, attrs.keep_dims);
}

template <bool kMean>
void ReduceSumKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const Reduction r = ReductionOf(inputs[0].type.shape, any);
  const double divisor = kMean ? static_cast<double>(r.inner().count()) : 1.0;
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& o) {
      double sum = 0;
      ForEachIndex(r.inner(), [&](const Index& i) { sum += double(x(r.At(o, i))); });
      y(o) = static_cast<T>(sum / divisor);
    });
  });
}

// Whether v takes the place of the best so far: greater, or the first NaN.
template <typename T>
bool Beats(T v, T best) {
  return v > best || (std::isnan(v) && !std::isnan(best));
}

// The index of the first maximum.
template <typename T>
Index FirstMaximum(const Strided<const T>& x, const Reduction& r, const Index& outer) {
  Index best = r.At(outer, Index{});
  ForEachIndex(r.inner(), [&](const Index& i) {
    const Index at = r.At(outer, i);
    if (Beats(x(at), x(best))) best = at;
  });
  return best;
}

void ReduceMaxKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const Reduction r = ReductionOf(inputs[0].type.shape, any);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& o) { y(o) = x(FirstMaximum(x, r, o)); });
  });
}

void ReduceMaxGradKernel(KernelContext&, std::span<const TensorView> outputs,
                         std::span<const TensorView> inputs, const AnyStruct& any) {
  const Reduction r = ReductionOf(inputs[0].type.shape, any);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), dy(inputs[1]);
    const Strided<T> dx(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& at) { dx(at) = zero; });
    ForEachIndex(inputs[1].type.shape, [&](const Index& o) { dx(FirstMaximum(x, r, o)) = dy(o); });
  });
}

void BroadcastKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& any) {
  const auto& attrs = any.As<BroadcastAttrs>();
  const bool repeats = !attrs.axes.empty();
  const Reduction r(outputs[0].type.shape, attrs.axes, attrs.keep_dims);
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T scale = static_cast<T>(attrs.scale);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape,
                 [&](const Index& at) { y(at) = scale * x(repeats ? r.Outer(at) : at); });
  });
}

}  // namespace

std::vector<KernelRow> ReduceReferenceKernels() {
  return {{.op = "reduce_sum", .fn = ReduceSumKernel<false>},
          {.op = "reduce_mean", .fn = ReduceSumKernel<true>},
          {.op = "reduce_max", .fn = ReduceMaxKernel},
          {.op = "reduce_max_grad", .fn = ReduceMaxGradKernel},
          {.op = "broadcast", .fn = BroadcastKernel}};
}

}  // namespace capstan
