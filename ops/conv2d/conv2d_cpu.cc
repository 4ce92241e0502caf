// Reference kernels: the three sums as they are written, accumulated in double.
#include "engine/kernel/strided.h"
#include "ops/conv2d/conv2d.h"

namespace capstan {
namespace {

// Calls f(n, o, p, q, c, i, u, v, h, w) for every product of the convolution: y[n,o,p,q] takes
// x[n,c,h,w] * w[o,i,u,v].
template <typename F>
void ForEachProduct(const Conv2dAttrs& attrs, const Shape& x, const Shape& w, const Shape& y,
                    F&& f) {
  const absl::StatusOr<Window> window = ConvWindow(attrs, w[2], w[3]);
  CHECK_OK(window);
  const int64_t outputs_of_group = y[1] / attrs.groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t p = 0; p < y[2]; ++p)
        for (int64_t q = 0; q < y[3]; ++q)
          for (int64_t i = 0; i < w[1]; ++i)
            for (int64_t u = 0; u < w[2]; ++u)
              for (int64_t v = 0; v < w[3]; ++v) {
                const int64_t h = window->Begin(0, p) + u * attrs.dilation[0];
                const int64_t l = window->Begin(1, q) + v * attrs.dilation[1];
                if (h < 0 || h >= x[2] || l < 0 || l >= x[3]) continue;
                f(n, o, p, q, o / outputs_of_group * w[1] + i, i, u, v, h, l);
              }
}

// Sums in double, whatever the type of the result.
class Sums {
 public:
  explicit Sums(const Shape& shape) : type_{DType::kF64, shape}, host_(type_), at_(host_.view()) {}
  double& operator()(int64_t a, int64_t b, int64_t c, int64_t d) { return at_(a, b, c, d); }
  template <typename T>
  void StoreTo(const TensorView& out) {
    const Strided<T> to(out);
    ForEachIndex(out.type.shape, [&](const Index& i) { to(i) = static_cast<T>(at_(i)); });
  }

 private:
  TensorType type_;
  HostTensor host_;
  Strided<double> at_;
};

void Conv2dKernel(KernelContext&, std::span<const TensorView> outputs,
                  std::span<const TensorView> inputs, const AnyStruct& attrs) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), w(inputs[1]);
    Sums y(outputs[0].type.shape);
    ForEachProduct(attrs.As<Conv2dAttrs>(), inputs[0].type.shape, inputs[1].type.shape,
                   outputs[0].type.shape,
                   [&](int64_t n, int64_t o, int64_t p, int64_t q, int64_t c, int64_t i, int64_t u,
                       int64_t v, int64_t h, int64_t l) {
                     y(n, o, p, q) += double(x(n, c, h, l)) * double(w(o, i, u, v));
                   });
    y.StoreTo<T>(outputs[0]);
  });
}

void InputGradKernel(KernelContext&, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct& attrs) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> dy(inputs[0]), w(inputs[1]);
    Sums dx(outputs[0].type.shape);
    ForEachProduct(attrs.As<Conv2dInputGradAttrs>(), outputs[0].type.shape, inputs[1].type.shape,
                   inputs[0].type.shape,
                   [&](int64_t n, int64_t o, int64_t p, int64_t q, int64_t c, int64_t i, int64_t u,
                       int64_t v, int64_t h, int64_t l) {
                     dx(n, c, h, l) += double(dy(n, o, p, q)) * double(w(o, i, u, v));
                   });
    dx.StoreTo<T>(outputs[0]);
  });
}

void WeightGradKernel(KernelContext&, std::span<const TensorView> outputs,
                      std::span<const TensorView> inputs, const AnyStruct& attrs) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), dy(inputs[1]);
    Sums dw(outputs[0].type.shape);
    ForEachProduct(attrs.As<Conv2dWeightGradAttrs>(), inputs[0].type.shape, outputs[0].type.shape,
                   inputs[1].type.shape,
                   [&](int64_t n, int64_t o, int64_t p, int64_t q, int64_t c, int64_t i, int64_t u,
                       int64_t v, int64_t h, int64_t l) {
                     dw(o, i, u, v) += double(dy(n, o, p, q)) * double(x(n, c, h, l));
                   });
    dw.StoreTo<T>(outputs[0]);
  });
}

}  // namespace

std::vector<KernelRow> Conv2dReferenceKernels() {
  return {{.op = "conv2d", .fn = Conv2dKernel},
          {.op = "conv2d_input_grad", .fn = InputGradKernel},
          {.op = "conv2d_weight_grad", .fn = WeightGradKernel}};
}

}  // namespace capstan
