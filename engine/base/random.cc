#include "engine/base/random.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace capstan {
namespace {

// Philox's key of every round, in every lane.
struct RoundKeys {
  static constexpr size_t kRounds = 10;
  __m256i k0[kRounds], k1[kRounds];

  explicit RoundKeys(uint64_t key) {
    uint32_t word0 = static_cast<uint32_t>(key), word1 = static_cast<uint32_t>(key >> 32);
    for (size_t round = 0; round < kRounds; ++round) {
      k0[round] = _mm256_set1_epi64x(word0);
      k1[round] = _mm256_set1_epi64x(word1);
      word0 += kPhiloxW0;
      word1 += kPhiloxW1;
    }
  }
};

// Word 1 of as many Philox blocks as keep AVX2's multiplier busy and fit its registers. Every
// 64-bit lane holds one 32-bit word; what lies above it is never read. Rounds leave out what is
// zero at first and what word 1 does not need at last.
constexpr size_t kVectors = 2, kLanes = kVectors * 4;

void PhiloxLanes(const RoundKeys& keys, const __m256i (&counters)[kVectors], uint32_t* bits) {
  const __m256i m0 = _mm256_set1_epi64x(kPhiloxM0), m1 = _mm256_set1_epi64x(kPhiloxM1);
  const auto high = [](__m256i product) { return _mm256_srli_epi64(product, 32); };
  __m256i c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    const __m256i p0 = _mm256_mul_epu32(counters[v], m0);
    c0[v] = _mm256_xor_si256(high(counters[v]), keys.k0[0]);
    c1[v] = _mm256_setzero_si256();
    c2[v] = _mm256_xor_si256(high(p0), keys.k1[0]);
    c3[v] = p0;
  }
#pragma GCC unroll 7
  for (size_t round = 1; round < RoundKeys::kRounds - 2; ++round) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v) {
      const __m256i p0 = _mm256_mul_epu32(c0[v], m0), p1 = _mm256_mul_epu32(c2[v], m1);
      c0[v] = _mm256_xor_si256(high(p1), _mm256_xor_si256(c1[v], keys.k0[round]));
      c1[v] = p1;
      c2[v] = _mm256_xor_si256(high(p0), _mm256_xor_si256(c3[v], keys.k1[round]));
      c3[v] = p0;
    }
  }
  __m256 words[kVectors];
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    const __m256i p0 = _mm256_mul_epu32(c0[v], m0);
    c2[v] = _mm256_xor_si256(high(p0), _mm256_xor_si256(c3[v], keys.k1[RoundKeys::kRounds - 2]));
    words[v] = _mm256_castsi256_ps(_mm256_mul_epu32(c2[v], m1));
  }
  // The low halves of all lanes, in order.
  const __m256d packed = _mm256_castps_pd(_mm256_shuffle_ps(words[0], words[1], 0b10001000));
  _mm256_storeu_pd(reinterpret_cast<double*>(bits), _mm256_permute4x64_pd(packed, 0b11011000));
}

}  // namespace

void RandomKey::UpperBits(uint64_t first, uint64_t step, std::span<uint32_t> bits) const {
  const RoundKeys keys(key_);
  const auto times = [step](uint64_t n) { return static_cast<int64_t>(n * step); };
  const __m256i start = _mm256_set1_epi64x(static_cast<int64_t>(first));
  __m256i counters[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    const uint64_t i = 4 * v;
    counters[v] = _mm256_add_epi64(
        start, _mm256_setr_epi64x(times(i), times(i + 1), times(i + 2), times(i + 3)));
  }
  const __m256i stride = _mm256_set1_epi64x(times(kLanes));
  size_t done = 0;
  for (; done + kLanes <= bits.size(); done += kLanes) {
    PhiloxLanes(keys, counters, &bits[done]);
    for (__m256i& counter : counters) counter = _mm256_add_epi64(counter, stride);
  }
  if (done == bits.size()) return;
  std::array<uint32_t, kLanes> last;
  PhiloxLanes(keys, counters, last.data());
  std::copy_n(last.begin(), bits.size() - done, &bits[done]);
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
