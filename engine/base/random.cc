#include "engine/base/random.h"

#include <immintrin.h>

#include <cmath>
#include <numbers>

namespace capstan {
namespace {

constexpr uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
constexpr uint32_t kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;

// Word 1 of as many Philox blocks as keep AVX2's multiplier busy. Every 64-bit lane holds one
// 32-bit word; what lies above it is never read.
constexpr size_t kVectors = 4, kLanes = kVectors * 4;

void PhiloxLanes(uint64_t key, uint64_t first, uint64_t step, uint32_t* bits) {
  const __m256i m0 = _mm256_set1_epi64x(kM0), m1 = _mm256_set1_epi64x(kM1);
  __m256i c0[kVectors], c1[kVectors], c2[kVectors] = {}, c3[kVectors] = {};
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    alignas(32) uint64_t counter[4];
    for (size_t i = 0; i < 4; ++i) counter[i] = first + (v * 4 + i) * step;
    c0[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(counter));
    c1[v] = _mm256_srli_epi64(c0[v], 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) {
      const __m256i p0 = _mm256_mul_epu32(c0[v], m0), p1 = _mm256_mul_epu32(c2[v], m1);
      c0[v] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1[v], key0));
      c1[v] = p1;
      c2[v] = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3[v], key1));
      c3[v] = p0;
    }
    k0 += kW0;
    k1 += kW1;
  }
  alignas(32) uint64_t words[4];
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(words), c1[v]);
    for (size_t i = 0; i < 4; ++i) bits[v * 4 + i] = static_cast<uint32_t>(words[i]);
  }
}

// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014): spreads every input bit.
uint64_t Avalanche(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter_lo, uint64_t counter_hi) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c = {
      static_cast<uint32_t>(counter_lo), static_cast<uint32_t>(counter_lo >> 32),
      static_cast<uint32_t>(counter_hi), static_cast<uint32_t>(counter_hi >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{kM0} * c[0], p1 = uint64_t{kM1} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kW0;
    k1 += kW1;
  }
  return c;
}

RandomKey RandomKey::Mix(uint64_t value) const {
  return RandomKey(Avalanche(key_ ^ Avalanche(value)));
}

RandomKey RandomKey::Mix(std::string_view text) const { return Mix(HashText(text)); }

uint64_t RandomKey::Bits(uint64_t index) const {
  const auto r = Philox(key_, index, 0);
  return uint64_t{r[1]} << 32 | r[0];
}

void RandomKey::UpperBits(uint64_t first, uint64_t step, std::span<uint32_t> bits) const {
  size_t done = 0;
  for (; done + kLanes <= bits.size(); done += kLanes) {
    PhiloxLanes(key_, first + done * step, step, &bits[done]);
  }
  for (; done < bits.size(); ++done) {
    bits[done] = static_cast<uint32_t>(Bits(first + done * step) >> 32);
  }
}

float RandomKey::Uniform(uint64_t index) const {
  return static_cast<float>(Bits(index) >> 40) * 0x1p-24f;
}

double RandomKey::UniformDouble(uint64_t index) const {
  return static_cast<double>(Bits(index) >> 11) * 0x1p-53;
}

double RandomKey::Normal(uint64_t index) const {
  const auto r = Philox(key_, index, 0);
  // (r + 0.5) / 2^32 lies strictly inside (0, 1), so the logarithm is finite.
  const double u = (r[0] + 0.5) * 0x1p-32, v = (r[1] + 0.5) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

uint64_t RandomKey::Below(uint64_t index, uint64_t n) const {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(Bits(index)) * n) >> 64);
}

uint64_t HashText(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return Avalanche(h);
}

}  // namespace capstan
