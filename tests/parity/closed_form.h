// Numbers for parity tests that need no file: first weights, images and labels are a pure function
// of a name and an index, computed alike here and in make_goldens.py.
//
//   bits(name, index) = upper 24 bits of SplitMix64(FNV-1a(name) + (index + 1) *
//   0x9E3779B97F4A7C15) unit(name, index) = bits / 2^23 - 1, in [-1, 1), exact in float
//
// Only additions, multiplications, divisions and square roots of doubles follow, which IEEE 754
// rounds alike everywhere; float networks take the double rounded once.
//
//   double w = closed_form::Parameter("conv1.weight", {8, 3, 3, 3}, i);   // i: row-major
//   double x = closed_form::Image(batch, i);                             // i in [0, n*c*h*w)
//   int64_t y = closed_form::Label(batch, sample, 10);
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/tensor/tensor_type.h"

namespace capstan::closed_form {

inline uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// The output function of Steele, Lea, Flood: "Fast splittable pseudorandom number generators".
inline uint64_t SplitMix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

inline uint64_t Bits(std::string_view name, int64_t index) {
  return SplitMix64(Fnv1a(name) + (static_cast<uint64_t>(index) + 1) * 0x9E3779B97F4A7C15u) >> 40;
}

inline double Unit(std::string_view name, int64_t index) {
  return static_cast<double>(Bits(name, index)) / 8388608.0 - 1.0;
}

// Element `index` of a parameter. Filters [o,i,h,w]: unit * sqrt(6 / (o*h*w)). The classifier's
// matrix [out,in]: unit / sqrt(in); its bias: unit / 4. Norms: weight 1/2 + unit/8, bias 1 +
// unit/4, which keeps most activations away from the kink of ReLU (README.md says why).
inline double Parameter(std::string_view name, const Shape& shape, int64_t index) {
  const double unit = Unit(name, index);
  if (shape.ndim() == 4) {
    return unit * std::sqrt(6.0 / static_cast<double>(shape[0] * shape[2] * shape[3]));
  }
  if (shape.ndim() == 2) return unit / std::sqrt(static_cast<double>(shape[1]));
  if (name == "fc.bias") return unit / 4.0;
  return name.ends_with("weight") ? 0.5 + unit / 8.0 : 1.0 + unit / 4.0;
}

// Element `index` of fixed batch `batch`, row-major over [n,c,h,w].
inline double Image(int64_t batch, int64_t index) {
  return 2.0 * Unit("image/" + std::to_string(batch), index);
}

inline int64_t Label(int64_t batch, int64_t sample, int64_t classes) {
  return static_cast<int64_t>(Bits("label/" + std::to_string(batch), sample)) % classes;
}

}  // namespace capstan::closed_form
