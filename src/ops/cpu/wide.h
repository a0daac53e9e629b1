// Vectors of CKPT_OPS_LANES floats as the compilers' own vector types, and the functions that the kernels are made of. Included by
// the kernels_*.cpp files only. No standard header here: an inline function of one, compiled for a larger instruction set, could
// be the copy that the linker keeps for everybody.
#pragma once

#include "ops/cpu/kernels.h"

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

// Where fewer than kLanes elements are left: the other lanes are `fill`, and are not stored.
CKPT_WIDE F load(const float *from, size_t count, float fill = 0.0f) {
  if (count == kLanes) return load(from);
  F value = all(fill);
  float lanes[kLanes];
  __builtin_memcpy(lanes, &value, sizeof value);
  for (size_t k = 0; k < count; ++k) lanes[k] = from[k];
  __builtin_memcpy(&value, lanes, sizeof value);
  return value;
}
CKPT_WIDE void store(float *to, F value, size_t count) {
  if (count == kLanes) return store(to, value);
  float lanes[kLanes];
  __builtin_memcpy(lanes, &value, sizeof value);
  for (size_t k = 0; k < count; ++k) to[k] = lanes[k];
}
CKPT_WIDE U load_words(const uint32_t *from, size_t count) {
  U value = {};
  if (count == kLanes)
    __builtin_memcpy(&value, from, sizeof value);
  else
    for (size_t k = 0; k < count; ++k) value[k] = from[k];
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

// In the same order for every caller: halves onto halves.
CKPT_WIDE float total(F value) {
  float lanes[kLanes];
  __builtin_memcpy(lanes, &value, sizeof value);
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}
CKPT_WIDE float largest(F value) {
  float lanes[kLanes];
  __builtin_memcpy(lanes, &value, sizeof value);
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t k = 0; k < half; ++k) lanes[k] = lanes[k] < lanes[k + half] ? lanes[k + half] : lanes[k];
  return lanes[0];
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
