// What the kernels are made of: elements as float, 16-byte vectors of them, reductions of fixed order, and masks drawn where they are
// used.
//
// Arithmetic whose result is stored is written with `fused`, `product` and `sum` (one rounding each, nothing for a compiler to
// contract): a kernel's vector path and its scalar path must give the same bits, for the one that is taken depends on addresses.
#pragma once

#include <cuda_runtime.h>  // first: the double's stands in front of what the next two include

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ckpt/rng.h"
#include "rng/normal.h"
#include "rng/philox.h"

namespace ckpt::ops::cuda {

#define CKPT_ON_DEVICE __device__ __forceinline__

constexpr unsigned kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

// ---- elements ----

CKPT_ON_DEVICE float as_float(float x) { return x; }
CKPT_ON_DEVICE float as_float(__nv_bfloat16 x) { return __bfloat162float(x); }
CKPT_ON_DEVICE float as_float(__half x) { return __half2float(x); }

// Rounds to nearest, ties to even.
template <class T>
CKPT_ON_DEVICE T rounded(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else if constexpr (__is_same(T, __half)) {
    return __float2half_rn(x);
  } else {
    return __float2bfloat16_rn(x);
  }
}

CKPT_ON_DEVICE float fused(float a, float b, float c) { return rng::OneLane::fma(a, b, c); }
CKPT_ON_DEVICE float product(float a, float b) { return rng::OneLane::times(a, b); }
CKPT_ON_DEVICE float sum(float a, float b) { return rng::OneLane::plus(a, b); }

// ---- 16-byte vectors ----

template <class T>
constexpr unsigned kLanes = 16 / sizeof(T);

template <unsigned N>
struct Floats {
  float at[N];
};

template <class T>
struct alignas(16) Packed {
  T at[kLanes<T>];
};

// `from` is aligned to 16.
template <class T>
CKPT_ON_DEVICE Floats<kLanes<T>> load_vector(const T *from) {
  const uint4 raw = *reinterpret_cast<const uint4 *>(from);
  Packed<T> packed;
  memcpy(&packed, &raw, sizeof packed);
  Floats<kLanes<T>> out;
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) out.at[k] = as_float(packed.at[k]);
  return out;
}

template <class T>
CKPT_ON_DEVICE void store_vector(T *to, const Floats<kLanes<T>> &values) {
  Packed<T> packed;
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) packed.at[k] = rounded<T>(values.at[k]);
  uint4 raw;
  memcpy(&raw, &packed, sizeof raw);
  *reinterpret_cast<uint4 *>(to) = raw;
}

// As many float32 as a vector of T has elements: one or two 16-byte accesses. `from` is aligned to 16.
template <unsigned N>
CKPT_ON_DEVICE Floats<N> load_floats(const float *from) {
  static_assert(N % 4 == 0);
  Floats<N> out;
#pragma unroll
  for (unsigned k = 0; k < N; k += 4) {
    const float4 four = *reinterpret_cast<const float4 *>(from + k);
    out.at[k] = four.x, out.at[k + 1] = four.y, out.at[k + 2] = four.z, out.at[k + 3] = four.w;
  }
  return out;
}
template <unsigned N>
CKPT_ON_DEVICE void store_floats(float *to, const Floats<N> &values) {
  static_assert(N % 4 == 0);
#pragma unroll
  for (unsigned k = 0; k < N; k += 4)
    *reinterpret_cast<float4 *>(to + k) = make_float4(values.at[k], values.at[k + 1], values.at[k + 2], values.at[k + 3]);
}

// Host: may all of these be accessed 16 bytes at a time? NULL counts as aligned.
template <class... P>
bool aligned16(const P *...pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

// ---- indices ----

CKPT_ON_DEVICE uint64_t thread_of_grid() { return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
CKPT_ON_DEVICE uint64_t threads_of_grid() { return static_cast<uint64_t>(gridDim.x) * blockDim.x; }

// vector(at) for each of the first `vectors` vectors of N elements, one(at) for each element behind them, spread over the grid.
template <unsigned N, class Vector, class One>
CKPT_ON_DEVICE void each(size_t count, size_t vectors, const Vector &vector, const One &one) {
  const uint64_t thread = thread_of_grid(), threads = threads_of_grid();
  for (uint64_t k = thread; k < vectors; k += threads) vector(k * N);
  for (uint64_t at = vectors * N + thread; at < count; at += threads) one(at);
}

// ---- reductions: every thread gets the result, and the order is the same in each run ----

template <class T>
CKPT_ON_DEVICE T warp_sum(T value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

CKPT_ON_DEVICE float warp_max(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, step));
  return value;
}

// All kBlock threads call it. `shared` has kBlock / 32 elements and may be used again at once.
template <unsigned kBlock, class T>
CKPT_ON_DEVICE T block_sum(T value, T *shared) {
  static_assert(kBlock % kWarp == 0 && kBlock <= 1024);
  value = warp_sum(value);
  if constexpr (kBlock > kWarp) {
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = shared[0];
#pragma unroll
    for (unsigned k = 1; k < kBlock / kWarp; ++k) value += shared[k];
    __syncthreads();
  }
  return value;
}

// ---- dropout: masks drawn from a snapshot ----

// Element e is kept, and multiplied by `scale`, iff its word is at most `last`: ckpt_philox_bernoulli(philox, 0, n, 1 - probability).
struct Dropout {
  ckpt_philox philox;
  uint32_t last;
  float scale;
};

// Host. `probability` in (0, 1).
inline Dropout dropout_of(float probability, const ckpt_philox &philox) {
  const double keep = 1.0 - static_cast<double>(probability);
  return {philox, static_cast<uint32_t>(static_cast<uint64_t>(std::round(keep * 0x1p32)) - 1), static_cast<float>(1.0 / keep)};
}

// The words of a snapshot, its step word read: made once in a thread.
struct Words4 {
  uint64_t seed, subsequence, offset;

  explicit CKPT_ON_DEVICE Words4(const ckpt_philox &philox)
      : seed(philox.seed), subsequence(philox.subsequence + (philox.step_word != nullptr ? *philox.step_word : 0)),
        offset(philox.offset) {}

  CKPT_ON_DEVICE uint32_t one(uint64_t element) const {
    const uint64_t word = offset + element;
    const rng::Block block = rng::block_at(seed, subsequence, word / 4);
    const uint32_t low = word % 2 == 0 ? block.word[0] : block.word[1], high = word % 2 == 0 ? block.word[2] : block.word[3];
    return word % 4 < 2 ? low : high;  // an index would put the block into local memory
  }

  // The words of elements first .. first + N - 1. One block for four of them where offset + first is a multiple of 4, which is the
  // same question for all threads when their `first` are multiples of 4: no divergence.
  template <unsigned N>
  CKPT_ON_DEVICE void of(uint64_t first, uint32_t (&out)[N]) const {
    static_assert(N % 4 == 0);
    const uint64_t word = offset + first;
    switch (word % 4) {
      case 0: return from_lane<0>(word / 4, out);
      case 1: return from_lane<1>(word / 4, out);
      case 2: return from_lane<2>(word / 4, out);
      default: return from_lane<3>(word / 4, out);
    }
  }

 private:
  template <unsigned kLane, unsigned N>
  CKPT_ON_DEVICE void from_lane(uint64_t block, uint32_t (&out)[N]) const {
    rng::Block now = rng::block_at(seed, subsequence, block);
#pragma unroll
    for (unsigned k = 0; k < N; k += 4) {
      if constexpr (kLane == 0) {
        if (k > 0) now = rng::block_at(seed, subsequence, block + k / 4);
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) out[k + i] = now.word[i];
      } else {
        const rng::Block next = rng::block_at(seed, subsequence, block + k / 4 + 1);
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) out[k + i] = kLane + i < 4 ? now.word[(kLane + i) % 4] : next.word[(kLane + i) % 4];
        now = next;
      }
    }
  }
};

CKPT_ON_DEVICE float masked(float value, uint32_t word, const Dropout &dropout) {
  return word <= dropout.last ? product(value, dropout.scale) : 0.0f;
}

}  // namespace ckpt::ops::cuda
