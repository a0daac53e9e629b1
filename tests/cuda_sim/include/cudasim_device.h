// What nvcc builds into device code, for the host: barriers, collectives, bits, conversions, arithmetic with one rounding, fast functions.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cudasim.h"

// ---- barriers and fences
inline void __syncthreads() { cudasim::barrier(); }
inline int __syncthreads_count(int p) { return static_cast<int>(cudasim::barrier_count(p != 0)); }
inline int __syncthreads_or(int p) { return cudasim::barrier_count(p != 0) != 0; }
inline int __syncthreads_and(int p) { return cudasim::barrier_count(p == 0) == 0; }
inline void __syncwarp(unsigned mask = ~0u) { cudasim::warp_sync(mask, 0); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
[[noreturn]] inline void __trap() { cudasim::trap(cudaErrorLaunchFailure, "__trap"); }

// ---- collectives of a warp
namespace cudasim {
// The lane's own value where `from` lies outside its segment.
template <class T>
T shuffle(unsigned mask, T value, int from, int width, bool own) {
  const int self = static_cast<int>(lane()), base = self & ~(width - 1);
  const uint64_t *all = warp_sync(mask, to_bits(value));
  const int lane_read = own ? self : base + (from & (width - 1));
  if ((mask >> lane_read & 1) == 0) trap(cudaErrorLaunchFailure, "shuffle from a lane outside the mask");
  return from_bits<T>(all[lane_read]);
}
template <class T, class F>
T reduce(unsigned mask, T value, F f) {
  const uint64_t *all = warp_sync(mask, to_bits(value));
  bool first = true;
  T sum{};
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1) sum = first ? from_bits<T>(all[i]) : f(sum, from_bits<T>(all[i])), first = false;
  return sum;
}
}  // namespace cudasim
template <class T>
T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  return cudasim::shuffle(mask, v, from, width, false);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const int self = static_cast<int>(cudasim::lane()), from = self ^ bits;
  return cudasim::shuffle(mask, v, from, width, from >= (self & ~(width - 1)) + width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int from = (static_cast<int>(cudasim::lane()) & (width - 1)) + static_cast<int>(by);
  return cudasim::shuffle(mask, v, from, width, from >= width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int from = (static_cast<int>(cudasim::lane()) & (width - 1)) - static_cast<int>(by);
  return cudasim::shuffle(mask, v, from, width, from < 0);
}
inline unsigned __ballot_sync(unsigned mask, int p) {
  const uint64_t *all = cudasim::warp_sync(mask, p != 0);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1) bits |= static_cast<unsigned>(all[i] & 1) << i;
  return bits;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
inline unsigned __activemask() { return cudasim::active_lanes(); }
template <class T>
unsigned __match_any_sync(unsigned mask, T v) {
  const uint64_t *all = cudasim::warp_sync(mask, cudasim::to_bits(v));
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i)
    if ((mask >> i & 1) && all[i] == cudasim::to_bits(v)) bits |= 1u << i;
  return bits;
}
template <class T>
T __reduce_add_sync(unsigned mask, T v) {
  return cudasim::reduce(mask, v, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
T __reduce_max_sync(unsigned mask, T v) {
  return cudasim::reduce(mask, v, [](T a, T b) { return a < b ? b : a; });
}
template <class T>
T __reduce_min_sync(unsigned mask, T v) {
  return cudasim::reduce(mask, v, [](T a, T b) { return b < a ? b : a; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned v) {
  return cudasim::reduce(mask, v, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned v) {
  return cudasim::reduce(mask, v, [](unsigned a, unsigned b) { return a & b; });
}

// ---- bits and integers
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long r = 0;
  for (int i = 0; i < 64; ++i) r |= (x >> i & 1) << (63 - i);
  return r;
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ typedef unsigned __int128 wide;
  return static_cast<unsigned long long>(static_cast<wide>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (by & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t both = static_cast<uint64_t>(y) << 32 | x;
  unsigned r = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned s = selector >> (4 * i) & 15, byte = static_cast<unsigned>(both >> (8 * (s & 7))) & 255;
    r |= (s & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
  }
  return r;
}
template <class T>
  requires std::is_arithmetic_v<T>
T min(T a, std::type_identity_t<T> b) {
  return b < a ? b : a;
}
template <class T>
  requires std::is_arithmetic_v<T>
T max(T a, std::type_identity_t<T> b) {
  return a < b ? b : a;
}

// ---- loads and stores with a hint
#define CUDASIM_LOAD(name) \
  template <class T>       \
  T name(const T *p) {     \
    return *p;             \
  }
CUDASIM_LOAD(__ldg)
CUDASIM_LOAD(__ldca)
CUDASIM_LOAD(__ldcg)
CUDASIM_LOAD(__ldcs)
CUDASIM_LOAD(__ldlu)
CUDASIM_LOAD(__ldcv)
#undef CUDASIM_LOAD
#define CUDASIM_STORE(name)                       \
  template <class T>                              \
  void name(T *p, std::type_identity_t<T> value) { \
    *p = value;                                   \
  }
CUDASIM_STORE(__stwb)
CUDASIM_STORE(__stcg)
CUDASIM_STORE(__stcs)
CUDASIM_STORE(__stwt)
#undef CUDASIM_STORE

// ---- bits of numbers, conversions
inline int __float_as_int(float x) { return static_cast<int>(cudasim::to_bits(x)); }
inline unsigned __float_as_uint(float x) { return static_cast<unsigned>(cudasim::to_bits(x)); }
inline float __int_as_float(int x) { return cudasim::from_bits<float>(static_cast<unsigned>(x)); }
inline float __uint_as_float(unsigned x) { return cudasim::from_bits<float>(x); }
inline long long __double_as_longlong(double x) { return static_cast<long long>(cudasim::to_bits(x)); }
inline double __longlong_as_double(long long x) { return cudasim::from_bits<double>(static_cast<uint64_t>(x)); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(std::nearbyintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline long long __float2ll_rn(float x) { return static_cast<long long>(std::nearbyintf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

// ---- one rounding each: the asm keeps the compiler from fusing what the device does not fuse
namespace cudasim {
template <class T>
T exact(T x) {
  asm("" : "+x"(x));
  return x;
}
}  // namespace cudasim
inline float __fadd_rn(float a, float b) { return cudasim::exact(a + b); }
inline float __fsub_rn(float a, float b) { return cudasim::exact(a - b); }
inline float __fmul_rn(float a, float b) { return cudasim::exact(a * b); }
inline float __fdiv_rn(float a, float b) { return cudasim::exact(a / b); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __frsqrt_rn(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
inline double __dadd_rn(double a, double b) { return cudasim::exact(a + b); }
inline double __dsub_rn(double a, double b) { return cudasim::exact(a - b); }
inline double __dmul_rn(double a, double b) { return cudasim::exact(a * b); }
inline double __ddiv_rn(double a, double b) { return cudasim::exact(a / b); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }

// ---- functions that the device has and the host has not, and the fast ones
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float *s, float *c) { *s = std::sin(x), *c = std::cos(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __tanhf(float x) { return std::tanh(x); }
inline void sincospif(float x, float *s, float *c) {
  const double angle = 3.14159265358979323846 * std::remainder(static_cast<double>(x), 2.0);
  *s = static_cast<float>(std::sin(angle)), *c = static_cast<float>(std::cos(angle));
}
inline float sinpif(float x) {
  float s, c;
  return sincospif(x, &s, &c), s;
}
inline float cospif(float x) {
  float s, c;
  return sincospif(x, &s, &c), c;
}
inline void __nanosleep(unsigned) {}
inline long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }
