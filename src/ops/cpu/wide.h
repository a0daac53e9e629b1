// Vectors of CKPT_OPS_LANES floats as the compilers' own vector types, and the functions that the kernels are made of. Included by
// the kernels_*.cpp files only. No standard header here: an inline function of one, compiled for a larger instruction set, could
// be the copy that the linker keeps for everybody.
#pragma once

#include "ops/cpu/kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>  // always-inline functions only
#endif

#define CKPT_WIDE static inline __attribute__((always_inline))

namespace ckpt::ops {
namespace {

constexpr size_t kLanes = CKPT_OPS_LANES;
typedef float F __attribute__((vector_size(kLanes * 4)));
typedef uint32_t U __attribute__((vector_size(kLanes * 4)));
typedef double D __attribute__((vector_size(kLanes * 8)));

CKPT_WIDE F all(float value) { return F{} + value; }
CKPT_WIDE F load(const float *from) {
  F value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
CKPT_WIDE void store(float *to, F value) { __builtin_memcpy(to, &value, sizeof value); }

// Where fewer than kLanes elements are left, the others are neither read nor written: `fill`, 0 for words. Rows of attention have
// every length, so these are as frequent as whole vectors and must not go through memory.
#if defined(__AVX512F__)
CKPT_WIDE __mmask16 first_lanes(size_t count) { return static_cast<__mmask16>((1u << count) - 1u); }
CKPT_WIDE F load_part(const float *from, size_t count, float fill) {
  return F(_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(count), from));
}
CKPT_WIDE void store_part(float *to, F value, size_t count) { _mm512_mask_storeu_ps(to, first_lanes(count), __m512(value)); }
CKPT_WIDE U load_words_part(const uint32_t *from, size_t count) { return U(_mm512_maskz_loadu_epi32(first_lanes(count), from)); }
#elif defined(__AVX2__)
CKPT_WIDE __m256i first_lanes(size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
CKPT_WIDE F load_part(const float *from, size_t count, float fill) {
  const __m256i mask = first_lanes(count);
  return F(_mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask)));
}
CKPT_WIDE void store_part(float *to, F value, size_t count) { _mm256_maskstore_ps(to, first_lanes(count), __m256(value)); }
CKPT_WIDE U load_words_part(const uint32_t *from, size_t count) {
  return U(_mm256_maskload_epi32(reinterpret_cast<const int *>(from), first_lanes(count)));
}
#else
CKPT_WIDE F load_part(const float *from, size_t count, float fill) {
  F value = all(fill);
  for (size_t k = 0; k < count; ++k) value[k] = from[k];
  return value;
}
CKPT_WIDE void store_part(float *to, F value, size_t count) {
  for (size_t k = 0; k < count; ++k) to[k] = value[k];
}
CKPT_WIDE U load_words_part(const uint32_t *from, size_t count) {
  U value = {};
  for (size_t k = 0; k < count; ++k) value[k] = from[k];
  return value;
}
#endif

CKPT_WIDE F load(const float *from, size_t count, float fill = 0.0f) {
  return count == kLanes ? load(from) : load_part(from, count, fill);
}
CKPT_WIDE void store(float *to, F value, size_t count) {
  if (count == kLanes)
    store(to, value);
  else
    store_part(to, value, count);
}
CKPT_WIDE U load_words(const uint32_t *from, size_t count) {
  if (count < kLanes) return load_words_part(from, count);
  U value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// body(first, count) over `total` elements; count is the constant kLanes but for the last call.
template <class Body>
CKPT_WIDE void each(size_t total, const Body &body) {
  size_t k = 0;
  for (; k + kLanes <= total; k += kLanes) body(k, kLanes);
  if (k < total) body(k, total - k);
}

// NaN in `x` stays (the comparison is false).
CKPT_WIDE F at_least(F x, F low) { return x < low ? low : x; }
CKPT_WIDE F at_most(F x, F high) { return x > high ? high : x; }

// Halves onto halves, down to one.
template <class Join>
CKPT_WIDE float folded(F value, const Join &join) {
  typedef float F4 __attribute__((vector_size(16)));
#if CKPT_OPS_LANES >= 8
  typedef float F8 __attribute__((vector_size(32)));
#endif
#if CKPT_OPS_LANES == 16
  const F8 eight = join(__builtin_shufflevector(value, value, 0, 1, 2, 3, 4, 5, 6, 7),
                        __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15));
#elif CKPT_OPS_LANES == 8
  const F8 eight = value;
#endif
#if CKPT_OPS_LANES >= 8
  const F4 four = join(__builtin_shufflevector(eight, eight, 0, 1, 2, 3), __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
#else
  const F4 four = value;
#endif
  const F4 two = join(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));
  const F4 one = join(two, __builtin_shufflevector(two, two, 1, 1, 1, 1));
  return one[0];
}
CKPT_WIDE float total(F value) {
  return folded(value, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}
CKPT_WIDE float largest(F value) {
  return folded(value, [](auto a, auto b) __attribute__((always_inline)) { return a < b ? b : a; });
}

// exp by range reduction, x = n ln 2 + r, and a minimax polynomial of degree 6 in r (relative error 3e-9 before rounding): within
// 1.5 units in the last place for -87 <= x <= 88; x is clamped to that range, NaN stays NaN.
CKPT_WIDE F exponential(F x) {
  x = at_most(at_least(x, all(-87.0f)), all(88.0f));
  // The sum's low bits are n + 127, the exponent field of 2^n.
  const F shifted = x * all(0x1.715476p+0f) + all(0x1.8p23f + 127.0f);
  const F n = shifted - all(0x1.8p23f + 127.0f);
  const F r = (x - n * all(0x1.63p-1f)) - n * all(-0x1.bd0106p-13f);
  F p = all(0x1.6a2434p-10f);
  p = p * r + all(0x1.1239e2p-7f);
  p = p * r + all(0x1.5558f2p-5f);
  p = p * r + all(0x1.555492p-3f);
  p = p * r + all(0x1.fffffcp-2f);
  p = p * r + all(1.0f);
  p = p * r + all(1.0f);
  U bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  F power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return p * power;
}

CKPT_WIDE F masked(F value, U words, const Mask &mask) {
  return words <= (U{} + mask.last) ? value * mask.scale : F{};
}

}  // namespace
}  // namespace ckpt::ops
