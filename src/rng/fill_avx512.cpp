// 16 words a vector; AVX-512 F, BW, DQ, VL.
#include "rng/fill.h"

#if defined(CKPT_RNG_X86)

#if defined(__GNUC__) && !defined(__clang__)  // its own header's "undefined" vectors, GCC bug 105593
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

#include "rng/fill_wide.h"

namespace ckpt::rng {
namespace {

struct Avx512 {
  using U = __m512i;
  using F = __m512;
  static constexpr uint64_t kBlocks = 8;
  static constexpr size_t kWords = kBlocks * kWordsPerBlock;
  static constexpr int kChains = 4;

  static CKPT_BOTH_SIDES U constant64(uint64_t x) { return _mm512_set1_epi64(static_cast<int64_t>(x)); }
  static CKPT_BOTH_SIDES U first_blocks() { return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); }
  static CKPT_BOTH_SIDES U sum64(U a, U b) { return _mm512_add_epi64(a, b); }
  static CKPT_BOTH_SIDES U high_half(U x) { return _mm512_srli_epi64(x, 32); }
  static CKPT_BOTH_SIDES U product(U a, U b) { return _mm512_mul_epu32(a, b); }
  static CKPT_BOTH_SIDES U flip3(U a, U b, U c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  // Pairs (low half of a, low half of b) and (high half of a, high half of b) in each 64-bit element.
  static CKPT_BOTH_SIDES U low_halves(U a, U b) { return _mm512_mask_shuffle_epi32(a, 0xAAAA, b, _MM_PERM_CCAA); }
  static CKPT_BOTH_SIDES U high_halves(U a, U b) { return _mm512_mask_shuffle_epi32(b, 0x5555, a, _MM_PERM_DDBB); }
  static CKPT_BOTH_SIDES U unpack_low(U a, U b) { return _mm512_unpacklo_epi64(a, b); }
  static CKPT_BOTH_SIDES U unpack_high(U a, U b) { return _mm512_unpackhi_epi64(a, b); }
  static CKPT_BOTH_SIDES void store(void *out, U x) { _mm512_storeu_si512(out, x); }
  static CKPT_BOTH_SIDES void store_below(uint8_t *out, U low, U high, uint32_t threshold) {
    const U bound = constant_bits(threshold);
    const __mmask32 mask = _mm512_kunpackw(_mm512_cmplt_epu32_mask(high, bound), _mm512_cmplt_epu32_mask(low, bound));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out), _mm256_maskz_set1_epi8(mask, 1));
  }

  static CKPT_BOTH_SIDES F constant(float x) { return _mm512_set1_ps(x); }
  static CKPT_BOTH_SIDES U constant_bits(uint32_t x) { return _mm512_set1_epi32(static_cast<int32_t>(x)); }
  static CKPT_BOTH_SIDES F from_unsigned(U x) { return _mm512_cvtepu32_ps(x); }
  static CKPT_BOTH_SIDES F from_signed(U x) { return _mm512_cvtepi32_ps(x); }
  static CKPT_BOTH_SIDES U truncated(F x) { return _mm512_cvttps_epi32(x); }
  static CKPT_BOTH_SIDES U bits(F x) { return _mm512_castps_si512(x); }
  static CKPT_BOTH_SIDES F real(U x) { return _mm512_castsi512_ps(x); }
  static CKPT_BOTH_SIDES U sum(U a, U b) { return _mm512_add_epi32(a, b); }
  static CKPT_BOTH_SIDES U difference(U a, U b) { return _mm512_sub_epi32(a, b); }
  static CKPT_BOTH_SIDES U both(U a, U b) { return _mm512_and_si512(a, b); }
  static CKPT_BOTH_SIDES U flip(U a, U b) { return _mm512_xor_si512(a, b); }
  template <int N> static CKPT_BOTH_SIDES U left(U x) { return _mm512_slli_epi32(x, N); }
  template <int N> static CKPT_BOTH_SIDES U right_signed(U x) { return _mm512_srai_epi32(x, N); }
  static CKPT_BOTH_SIDES F choose_odd(U k, F odd, F even) {
    return _mm512_mask_blend_ps(_mm512_test_epi32_mask(k, constant_bits(1)), even, odd);
  }
  static CKPT_BOTH_SIDES F plus(F a, F b) { return _mm512_add_ps(a, b); }
  static CKPT_BOTH_SIDES F times(F a, F b) { return _mm512_mul_ps(a, b); }
  static CKPT_BOTH_SIDES F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static CKPT_BOTH_SIDES F root(F x) { return _mm512_sqrt_ps(x); }
};

}  // namespace

const Fills kAvx512Fills = {fill_u32<Avx512>, fill_uniform<Avx512>, fill_normal<Avx512>, fill_below<Avx512>};

}  // namespace ckpt::rng

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
