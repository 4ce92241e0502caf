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

// Philox's multipliers, and what its key grows by every round.
inline constexpr uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;

// Four 32-bit words of Philox4x32-10 for a 64-bit key and a 128-bit counter.
constexpr std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c = {
      static_cast<uint32_t>(counter_lo), static_cast<uint32_t>(counter_lo >> 32),
      static_cast<uint32_t>(counter_hi), static_cast<uint32_t>(counter_hi >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxM0} * c[0], p1 = uint64_t{kPhiloxM1} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return c;
}

// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014): spreads every input bit.
constexpr uint64_t Avalanche(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// 64-bit FNV-1a with a final avalanche; stable across machines, used for names and digests.
uint64_t HashText(std::string_view text);

// A stream of numbers. Immutable; Mix derives an independent stream. Safe from any thread; what is
// constexpr works on a GPU too.
class RandomKey {
 public:
  explicit constexpr RandomKey(uint64_t seed) : key_(seed) {}

  constexpr RandomKey Mix(uint64_t value) const {
    return RandomKey(Avalanche(key_ ^ Avalanche(value)));
  }
  RandomKey Mix(std::string_view text) const { return Mix(HashText(text)); }

  // 64 random bits of draw `index`.
  constexpr uint64_t Bits(uint64_t index) const {
    const std::array<uint32_t, 4> r = Philox(key_, index, 0);
    return uint64_t{r[1]} << 32 | r[0];
  }
  // The upper 32 bits of draws first, first + step, first + 2 step, ...: several at a time.
  void UpperBits(uint64_t first, uint64_t step, std::span<uint32_t> bits) const;
  // Uniform in [0, 1); the float form has 24 bits, the double form 53.
  float Uniform(uint64_t index) const;
  double UniformDouble(uint64_t index) const;
  // Standard normal (Box-Muller over the two halves of one Philox block).
  double Normal(uint64_t index) const;
  // Uniform integer in [0, n) by rejection-free multiply-shift (bias below 2^-32 for n < 2^32).
  uint64_t Below(uint64_t index, uint64_t n) const;

  constexpr uint64_t key() const { return key_; }

 private:
  uint64_t key_;
};

}  // namespace capstan
