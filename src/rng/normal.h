// Box-Muller in float32, written so that every machine, vector width and side (host, device) gives the same bits: all
// that is used is addition, multiplication, fused multiply-add and square root, each correctly rounded by IEEE 754, and
// integer operations. A product never meets an addition but inside an explicit fma, so a compiler has nothing to contract.
//
//   u = x 2^-32 + 2^-33     v = y 2pi 2^-32 + pi 2^-32     (float32, as cuRAND's)
//   sine = sqrt(-2 ln u) sin v     cosine = sqrt(-2 ln u) cos v
//
// Each result is within 3.5 units in the last place of these formulas in double precision for the same u and v (measured:
// 3.23 over 8e7 results; ln 0.85, sin and cos 1.55), and within 2.5e-6 of them for the exact angle 2pi (y + 1/2) 2^-32: the
// rounding of v is by far the larger part, and it is cuRAND's own. cuRAND's host code rounds y 2pi 2^-32 before it adds,
// which moves v by one unit in the last place, 4.8e-7, and its device code uses the hardware's sine and cosine: normals
// agree with cuRAND's within sqrt(-2 ln u) 4.8e-7 and a few units in the last place, not bit by bit.
//
// `L` is a set of lanes: OneLane below, and one per instruction set in fill_avx2.cpp and fill_avx512.cpp. The polynomials
// are minimax fits (Remez exchange in 40 digits, then rounded to float32); their own relative error is in units of 2^-24.
#pragma once

#include <string.h>

#include "rng/philox.h"

namespace ckpt::rng {

struct OneLane {
  using U = uint32_t;
  using F = float;
  static CKPT_BOTH_SIDES F constant(float x) { return x; }
  static CKPT_BOTH_SIDES U constant_bits(uint32_t x) { return x; }
  static CKPT_BOTH_SIDES F from_unsigned(U x) { return static_cast<float>(x); }
  static CKPT_BOTH_SIDES F from_signed(U x) { return static_cast<float>(static_cast<int32_t>(x)); }
  static CKPT_BOTH_SIDES U truncated(F x) { return static_cast<uint32_t>(static_cast<int32_t>(x)); }
  static CKPT_BOTH_SIDES U bits(F x) { U u; memcpy(&u, &x, sizeof u); return u; }
  static CKPT_BOTH_SIDES F real(U x) { F f; memcpy(&f, &x, sizeof f); return f; }
  static CKPT_BOTH_SIDES U sum(U a, U b) { return a + b; }
  static CKPT_BOTH_SIDES U difference(U a, U b) { return a - b; }
  static CKPT_BOTH_SIDES U both(U a, U b) { return a & b; }
  static CKPT_BOTH_SIDES U flip(U a, U b) { return a ^ b; }
  template <int N> static CKPT_BOTH_SIDES U left(U x) { return x << N; }
  template <int N> static CKPT_BOTH_SIDES U right_signed(U x) { return static_cast<uint32_t>(static_cast<int32_t>(x) >> N); }
  static CKPT_BOTH_SIDES F choose_odd(U k, F odd, F even) { return (k & 1u) != 0 ? odd : even; }
#if defined(__CUDA_ARCH__)
  static CKPT_BOTH_SIDES F plus(F a, F b) { return __fadd_rn(a, b); }
  static CKPT_BOTH_SIDES F times(F a, F b) { return __fmul_rn(a, b); }
  static CKPT_BOTH_SIDES F fma(F a, F b, F c) { return __fmaf_rn(a, b, c); }
  static CKPT_BOTH_SIDES F root(F x) { return __fsqrt_rn(x); }
#else
  static CKPT_BOTH_SIDES F plus(F a, F b) { return a + b; }
  static CKPT_BOTH_SIDES F times(F a, F b) { return a * b; }
  static CKPT_BOTH_SIDES F fma(F a, F b, F c) { return __builtin_fmaf(a, b, c); }
  static CKPT_BOTH_SIDES F root(F x) { return __builtin_sqrtf(x); }
#endif
};

// ln u for normal u > 0, within 1 unit in the last place; exactly 0 for 1. u = 2^e (1 + f), 1 + f in [sqrt 1/2, sqrt 2).
template <class L>
CKPT_BOTH_SIDES typename L::F natural_log(typename L::F u) {
  using F = typename L::F;
  using U = typename L::U;
  const U pattern = L::bits(u);
  const U e = L::template right_signed<23>(L::difference(pattern, L::constant_bits(0x3F3504F3u)));  // bits of sqrt 1/2
  const F f = L::plus(L::real(L::difference(pattern, L::template left<23>(e))), L::constant(-1.0f));
  const F exponent = L::from_signed(e);
  const F square = L::times(f, f);
  F p = L::constant(0.06746649f);  // ln(1 + f) = f - f^2/2 + f^3 p(f), 0.013
  p = L::fma(p, f, L::constant(-0.11675654f));
  p = L::fma(p, f, L::constant(0.11888159f));
  p = L::fma(p, f, L::constant(-0.12405588f));
  p = L::fma(p, f, L::constant(0.14219552f));
  p = L::fma(p, f, L::constant(-0.16667996f));
  p = L::fma(p, f, L::constant(0.20002119f));
  p = L::fma(p, f, L::constant(-0.25000009f));
  p = L::fma(p, f, L::constant(0.33333313f));
  F tail = L::fma(square, L::constant(-0.5f), L::times(p, L::times(f, square)));
  tail = L::fma(exponent, L::constant(1.4286068e-6f), tail);  // ln 2 = 0xB172 2^-16 + this
  return L::fma(exponent, L::constant(0x0.B172p0f), L::plus(f, tail));
}

// sin v and cos v for v in [0, 2 pi], each within 1.6 units in the last place. v = k pi/2 + r with pi/2 in three parts;
// taking off the leading one is exact, since v and k times that part lie on one grid of 2^-24 and r needs 24 bits of it.
template <class L>
CKPT_BOTH_SIDES void sine_cosine(typename L::F v, typename L::F *sine, typename L::F *cosine) {
  using F = typename L::F;
  using U = typename L::U;
  const U k = L::truncated(L::fma(v, L::constant(0.63661975f), L::constant(0.5f)));
  const F quarter = L::from_signed(k);
  F r = L::fma(quarter, L::constant(-1.57079637f), v);
  r = L::fma(quarter, L::constant(4.37113883e-08f), r);
  r = L::fma(quarter, L::constant(1.71512451e-15f), r);
  const F z = L::times(r, r);
  F s = L::constant(-0.00019516656f);  // sin r = r + r z s(z), 0.06
  s = L::fma(s, z, L::constant(0.0083321733f));
  s = L::fma(s, z, L::constant(-0.16666655f));
  s = L::fma(L::times(r, z), s, r);
  F c = L::constant(2.4432413e-5f);  // cos r = 1 - z/2 + z^2 c(z), 0.002
  c = L::fma(c, z, L::constant(-0.0013887309f));
  c = L::fma(c, z, L::constant(0.041666646f));
  c = L::fma(L::times(z, z), c, L::fma(z, L::constant(-0.5f), L::constant(1.0f)));
  const U two = L::constant_bits(2u);
  const U sine_sign = L::template left<30>(L::both(k, two));
  const U cosine_sign = L::template left<30>(L::both(L::sum(k, L::constant_bits(1u)), two));
  *sine = L::real(L::flip(L::bits(L::choose_odd(k, c, s)), sine_sign));
  *cosine = L::real(L::flip(L::bits(L::choose_odd(k, s, c)), cosine_sign));
}

template <class L>
CKPT_BOTH_SIDES void box_muller(typename L::U x, typename L::U y, typename L::F *sine, typename L::F *cosine) {
  using F = typename L::F;
  const F u = L::fma(L::from_unsigned(x), L::constant(0x1p-32f), L::constant(0x1p-33f));
  const F v = L::fma(L::from_unsigned(y), L::constant(6.2831855f * 0x1p-32f), L::constant(6.2831855f * 0x1p-33f));
  const F radius = L::root(L::times(natural_log<L>(u), L::constant(-2.0f)));
  sine_cosine<L>(v, sine, cosine);
  *sine = L::times(radius, *sine);
  *cosine = L::times(radius, *cosine);
}

}  // namespace ckpt::rng
