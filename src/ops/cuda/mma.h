// What a warp's tensor cores need, in two texts: PTX for nvcc, loops for the CPU double, with PTX's register layouts in both, so that the
// code around them is common.
//
// A lane is (g, t) = (lane / 4, lane % 4). A 16 x 8 product of float32 accumulators is float[4]: rows g and g + 8 (elements 0, 1 and 2, 3),
// columns 2t and 2t + 1. Two such tiles side by side, rounded and packed in pairs, are the left operand of a next product: so the weights
// of attention go from scores to the product with the values without leaving their registers.
#pragma once

#include "ops/cuda/element.h"

namespace ckpt::ops::cuda {

// Two elements in one register, `low` at the lower address.
template <class T>
CKPT_ON_DEVICE uint32_t packed_pair(float low, float high) {
  static_assert(sizeof(T) == 2);
  uint32_t out;
  if constexpr (__is_same(T, __half)) {
    const __half2 pair = __floats2half2_rn(low, high);
    memcpy(&out, &pair, sizeof out);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    memcpy(&out, &pair, sizeof out);
  }
  return out;
}

#ifdef CUDASIM

namespace double_of_mma {

template <class T>
inline float element_of(uint32_t pair, unsigned high) {
  const uint16_t bits = static_cast<uint16_t>(high != 0 ? pair >> 16 : pair);
  T value;
  std::memcpy(static_cast<void *>(&value), &bits, sizeof value);
  return as_float(value);
}

// Lane k of the warp gave the address of row k % 8 of matrix k / 8.
template <bool kTransposed>
inline void load_matrices(uint32_t (&to)[4], const void *row) {
  const uint64_t mine = reinterpret_cast<uint64_t>(row);
  const uint64_t *const rows = cudasim::warp_sync(~0u, mine);
  const unsigned lane = cudasim::lane(), g = lane / 4, t = lane % 4;
  for (unsigned m = 0; m < 4; ++m) {
    uint16_t low, high;
    const auto element = [&](unsigned r, unsigned c, uint16_t *out) {
      const uint64_t from = rows[m * 8 + r];
      if (from % 16 != 0) *out = 0xffff;  // PTX asks for it: NaN shows it
      else std::memcpy(out, reinterpret_cast<const uint16_t *>(from) + c, sizeof *out);
    };
    element(kTransposed ? 2 * t : g, kTransposed ? g : 2 * t, &low);
    element(kTransposed ? 2 * t + 1 : g, kTransposed ? g : 2 * t + 1, &high);
    to[m] = low | static_cast<uint32_t>(high) << 16;
  }
}

}  // namespace double_of_mma

template <class T>
inline void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  struct Registers {
    const uint32_t *a;
    uint32_t b[2];
  } const mine{a, {b0, b1}};
  // The lanes of a warp share one address space: each shows its registers to the others.
  const uint64_t *const all = cudasim::warp_sync(~0u, reinterpret_cast<uint64_t>(&mine));
  const unsigned lane = cudasim::lane(), g = lane / 4, t = lane % 4;
  float left[2][16], right[2][16];
  for (unsigned k = 0; k < 16; ++k) {
    const unsigned from = k % 8 / 2, upper = k / 8;
    for (unsigned i = 0; i < 2; ++i) {
      left[i][k] = double_of_mma::element_of<T>(reinterpret_cast<const Registers *>(all[g * 4 + from])->a[i + 2 * upper], k % 2);
      right[i][k] = double_of_mma::element_of<T>(reinterpret_cast<const Registers *>(all[(2 * t + i) * 4 + from])->b[upper], k % 2);
    }
  }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) d[i] += left[i / 2][k] * right[i % 2][k];
  cudasim::warp_sync(~0u, 0);  // nobody's registers change before all have read them
}

inline void load_matrices(uint32_t (&to)[4], const void *row) { double_of_mma::load_matrices<false>(to, row); }
inline void load_matrices_transposed(uint32_t (&to)[4], const void *row) { double_of_mma::load_matrices<true>(to, row); }

// 2^x, with x = -infinity giving 0.
inline float fast_exp2(float x) { return std::exp2(x); }

#else

// d [16 x 8] += a [16 x 16, by rows] * b [16 x 8, by columns]; T is the type of a and b. Element (row, k) of a: register
// row / 8 + 2 (k / 8) of lane (row % 8, k % 8 / 2). Element (k, column) of b: register k / 8 of lane (column, k % 8 / 2).
template <class T>
CKPT_ON_DEVICE void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (__is_same(T, __half)) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(__is_same(T, __nv_bfloat16));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// Four 8 x 8 matrices of 16-bit elements from shared memory. Lane k gives the address of row k % 8 of matrix k / 8, aligned to 16; lane
// (g, t) gets of each matrix elements 2t and 2t + 1 of row g, or (transposed) of column g.
CKPT_ON_DEVICE void load_matrices(uint32_t (&to)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
CKPT_ON_DEVICE void load_matrices_transposed(uint32_t (&to)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// 2^x within 2 units in the last place, denormal results 0, with x = -infinity giving 0. One instruction.
CKPT_ON_DEVICE float fast_exp2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

#endif

}  // namespace ckpt::ops::cuda
