// The update of one element; both kernels are loops over it.
//
//   const AverageStep<float> step(0.999);
//   a[i] = step(a[i], w[i]);
#pragma once

namespace capstan {

template <typename T>
struct AverageStep {
  T keep, take;
  bool from_average;  // the average is the nearer end

  explicit constexpr AverageStep(double decay)
      : keep(static_cast<T>(decay)), take(static_cast<T>(1 - decay)), from_average(decay > 0.5) {}

  constexpr T operator()(T a, T w) const {
    return from_average ? a + take * (w - a) : w - keep * (w - a);
  }
};

}  // namespace capstan
