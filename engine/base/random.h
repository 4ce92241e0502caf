// Counter-based random numbers: a draw is a pure function of (key, index), so the order of work,
// the number of threads and the way a batch is cut never change what is drawn.
//
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox4x32-10).
//
//   RandomKey key = RandomKey(seed).Mix("layer1.0.dropout").Mix(iteration);
//   float u = key.Uniform(global_index);       // [0, 1)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace capstan {

// Four 32-bit words of Philox4x32-10 for a 64-bit key and a 128-bit counter.
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi);

// A stream of numbers. Immutable; Mix derives an independent stream. Safe from any thread.
class RandomKey {
 public:
  explicit RandomKey(uint64_t seed) : key_(seed) {}

  RandomKey Mix(uint64_t value) const;
  RandomKey Mix(std::string_view text) const;

  // 64 random bits of draw `index`.
  uint64_t Bits(uint64_t index) const;
  // The upper 32 bits of draws first, first + step, first + 2 step, ...: several at a time.
  void UpperBits(uint64_t first, uint64_t step, std::span<uint32_t> bits) const;
  // Uniform in [0, 1); the float form has 24 bits, the double form 53.
  float Uniform(uint64_t index) const;
  double UniformDouble(uint64_t index) const;
  // Standard normal (Box-Muller over the two halves of one Philox block).
  double Normal(uint64_t index) const;
  // Uniform integer in [0, n) by rejection-free multiply-shift (bias below 2^-32 for n < 2^32).
  uint64_t Below(uint64_t index, uint64_t n) const;

  uint64_t key() const { return key_; }

 private:
  uint64_t key_;
};

// 64-bit FNV-1a with a final avalanche; stable across machines, used for names and digests.
uint64_t HashText(std::string_view text);

}  // namespace capstan
