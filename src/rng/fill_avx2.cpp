// 8 words a vector; AVX2 and FMA.
#include "rng/fill.h"

#if defined(CKPT_RNG_X86)

#include <immintrin.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#include "rng/fill_wide.h"

namespace ckpt::rng {
namespace {

struct Avx2 {
  using U = __m256i;
  using F = __m256;
  static constexpr uint64_t kBlocks = 4;
  static constexpr size_t kWords = kBlocks * kWordsPerBlock;
  static constexpr int kChains = 2;  // 4 would not stay in 16 registers

  static CKPT_BOTH_SIDES U constant64(uint64_t x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }
  static CKPT_BOTH_SIDES U first_blocks() { return _mm256_setr_epi64x(0, 2, 1, 3); }
  static CKPT_BOTH_SIDES U sum64(U a, U b) { return _mm256_add_epi64(a, b); }
  static CKPT_BOTH_SIDES U high_half(U x) { return _mm256_srli_epi64(x, 32); }
  static CKPT_BOTH_SIDES U product(U a, U b) { return _mm256_mul_epu32(a, b); }
  static CKPT_BOTH_SIDES U flip3(U a, U b, U c) { return _mm256_xor_si256(a, _mm256_xor_si256(b, c)); }
  // Pairs (low half of a, low half of b) and (high half of a, high half of b) in each 64-bit element.
  static CKPT_BOTH_SIDES U low_halves(U a, U b) { return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA); }
  static CKPT_BOTH_SIDES U high_halves(U a, U b) { return _mm256_blend_epi32(_mm256_srli_epi64(a, 32), b, 0xAA); }
  static CKPT_BOTH_SIDES U unpack_low(U a, U b) { return _mm256_unpacklo_epi64(a, b); }
  static CKPT_BOTH_SIDES U unpack_high(U a, U b) { return _mm256_unpackhi_epi64(a, b); }
  static CKPT_BOTH_SIDES void store(void *out, U x) { _mm256_storeu_si256(static_cast<__m256i *>(out), x); }
  static CKPT_BOTH_SIDES U is_below(U x, uint32_t threshold) {  // comparison is signed: move both by 2^31
    const U middle = constant_bits(0x80000000u);
    return _mm256_cmpgt_epi32(constant_bits(threshold ^ 0x80000000u), _mm256_xor_si256(x, middle));
  }
  static CKPT_BOTH_SIDES void store_below(uint8_t *out, U low, U high, uint32_t threshold) {
    // packs works within 128-bit halves, so the quarters come out as 0 2 1 3.
    const U pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(is_below(low, threshold), is_below(high, threshold)), 0xD8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm_and_si128(bytes, _mm_set1_epi8(1)));
  }

  static CKPT_BOTH_SIDES F constant(float x) { return _mm256_set1_ps(x); }
  static CKPT_BOTH_SIDES U constant_bits(uint32_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
  // AVX2 converts signed integers only. Both halves are exact, and so is the product: one rounding, as it should be.
  static CKPT_BOTH_SIDES F from_unsigned(U x) {
    const F high = _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 16));
    const F low = _mm256_cvtepi32_ps(_mm256_and_si256(x, constant_bits(0xFFFFu)));
    return _mm256_fmadd_ps(high, constant(65536.0f), low);
  }
  static CKPT_BOTH_SIDES F from_signed(U x) { return _mm256_cvtepi32_ps(x); }
  static CKPT_BOTH_SIDES U truncated(F x) { return _mm256_cvttps_epi32(x); }
  static CKPT_BOTH_SIDES U bits(F x) { return _mm256_castps_si256(x); }
  static CKPT_BOTH_SIDES F real(U x) { return _mm256_castsi256_ps(x); }
  static CKPT_BOTH_SIDES U sum(U a, U b) { return _mm256_add_epi32(a, b); }
  static CKPT_BOTH_SIDES U difference(U a, U b) { return _mm256_sub_epi32(a, b); }
  static CKPT_BOTH_SIDES U both(U a, U b) { return _mm256_and_si256(a, b); }
  static CKPT_BOTH_SIDES U flip(U a, U b) { return _mm256_xor_si256(a, b); }
  template <int N> static CKPT_BOTH_SIDES U left(U x) { return _mm256_slli_epi32(x, N); }
  template <int N> static CKPT_BOTH_SIDES U right_signed(U x) { return _mm256_srai_epi32(x, N); }
  static CKPT_BOTH_SIDES F choose_odd(U k, F odd, F even) {
    return _mm256_blendv_ps(even, odd, _mm256_castsi256_ps(_mm256_slli_epi32(k, 31)));
  }
  static CKPT_BOTH_SIDES F plus(F a, F b) { return _mm256_add_ps(a, b); }
  static CKPT_BOTH_SIDES F times(F a, F b) { return _mm256_mul_ps(a, b); }
  static CKPT_BOTH_SIDES F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static CKPT_BOTH_SIDES F root(F x) { return _mm256_sqrt_ps(x); }
};

}  // namespace

const Fills kAvx2Fills = {fill_u32<Avx2>, fill_uniform<Avx2>, fill_normal<Avx2>, fill_below<Avx2>};

}  // namespace ckpt::rng

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
