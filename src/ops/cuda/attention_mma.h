// Attention of 16-bit types on tensor cores, heads of up to 128 channels. A block is 4 warps of 16 rows. Rows and sums are a warp's own:
// warps meet only to stream tiles of the other kind through shared memory.
#pragma once

#include "ops/cuda/async_copy.h"
#include "ops/cuda/attention_shape.h"
#include "ops/cuda/mma.h"

namespace ckpt::ops::cuda::tensor {

// 4 warps: two or three blocks of them fit a multiprocessor with 170 to 255 registers a thread.
constexpr unsigned kThreads = 128, kRowsOfWarp = 16, kRows = kThreads / kWarp * kRowsOfWarp;

// A row in shared memory is 16 bytes longer than its D elements: the 8 rows of a matrix load then lie in different banks.
template <unsigned D>
constexpr unsigned kStride = D + 8;

// Rows streamed at a time in backward: with 128 channels, sums for 64 would not leave registers for the products.
template <unsigned D>
constexpr unsigned kStreamed = D <= 64 ? 64 : 32;
constexpr unsigned kKeys = 64;  // in forward

template <unsigned D>
constexpr size_t forward_bytes() {
  return (kRows + 2 * kKeys) * kStride<D> * 2;
}
template <unsigned D>
constexpr size_t backward_bytes() {
  return (2 * kRows + 4 * kStreamed<D>) * kStride<D> * 2 + 4 * kStreamed<D> * sizeof(float);
}

// kCount rows of a head to shared memory; zeros beyond `rows` of them and beyond the head's channels.
template <unsigned D, unsigned kCount, class T>
CKPT_ON_DEVICE void stream_rows(Copies &copies, const Attention &a, T *to, const T *from, size_t ld, uint32_t rows) {
  constexpr unsigned kVectors = D / 8;
  static_assert(kCount * kVectors % kThreads == 0);
  if (a.vectors != 0) {
    // Addresses outside are made but not read.
    if constexpr (kThreads % kVectors == 0) {
      constexpr unsigned kStep = kThreads / kVectors;
      const unsigned row = threadIdx.x / kVectors, column = threadIdx.x % kVectors * 8;
      const uint32_t below = column < a.head_size ? rows : 0;
      const T *at = from + row * ld + column;
#pragma unroll
      for (unsigned k = 0; k < kCount / kStep; ++k, at += kStep * ld)
        copies.vector(to + (row + k * kStep) * kStride<D> + column, at, row + k * kStep < below);
    } else {
#pragma unroll
      for (unsigned k = 0; k < kCount * kVectors / kThreads; ++k) {
        const unsigned index = k * kThreads + threadIdx.x, row = index / kVectors, column = index % kVectors * 8;
        copies.vector(to + row * kStride<D> + column, from + row * ld + column, row < rows && column < a.head_size);
      }
    }
  } else {
    for (unsigned index = threadIdx.x; index < kCount * D; index += kThreads) {
      const unsigned row = index / D, column = index % D;
      to[row * kStride<D> + column] = row < rows && column < a.head_size ? from[row * ld + column] : rounded<T>(0.0f);
    }
  }
}

// to [16, N] += left [16, D] * right [N, D]^T, both in shared memory.
template <unsigned D, unsigned N, class T>
CKPT_ON_DEVICE void add_product_with_rows(float (&to)[N / 8][4], const uint32_t (&left)[4], const T *right_at, unsigned k) {
#pragma unroll
  for (unsigned n = 0; n < N; n += 16) {
    uint32_t b[4];
    load_matrices(b, right_at + n * kStride<D> + k);
    multiply_add<T>(to[n / 8], left, b[0], b[1]);
    multiply_add<T>(to[n / 8 + 1], left, b[2], b[3]);
  }
}
template <unsigned D, class T>
CKPT_ON_DEVICE const T *left_of_lane(const T *left) {
  const unsigned lane = threadIdx.x % kWarp;
  return left + lane % 16 * kStride<D> + lane / 16 * 8;
}
template <unsigned D, class T>
CKPT_ON_DEVICE const T *right_of_lane(const T *right) {
  const unsigned lane = threadIdx.x % kWarp;
  return right + (lane / 16 * 8 + lane % 8) * kStride<D> + lane / 8 % 2 * 8;
}
template <unsigned D, unsigned N, class T>
CKPT_ON_DEVICE void add_product_with_rows(float (&to)[N / 8][4], const T *left, const T *right) {
  const T *const left_at = left_of_lane<D>(left), *const right_at = right_of_lane<D>(right);
  [[maybe_unused]] constexpr unsigned kAtOnce = 2;  // more, and the sums of a backward kernel leave no registers for them
#pragma unroll kAtOnce
  for (unsigned k = 0; k < D; k += 16) {
    uint32_t a[4];
    load_matrices(a, left_at + k);
    add_product_with_rows<D, N>(to, a, right_at, k);
  }
}

// to [16, D] += left [16, N] * right [N, D]; left is in registers, a product's result, and is rounded here.
template <unsigned D, unsigned N, class T>
CKPT_ON_DEVICE void add_product_with_columns(float (&to)[D / 8][4], const float (&left)[N / 8][4], const T *right) {
  const unsigned lane = threadIdx.x % kWarp;
  const T *const right_at = right + lane % 16 * kStride<D> + lane / 16 * 8;
#pragma unroll
  for (unsigned k = 0; k < N; k += 16) {
    const uint32_t a[4] = {packed_pair<T>(left[k / 8][0], left[k / 8][1]), packed_pair<T>(left[k / 8][2], left[k / 8][3]),
                           packed_pair<T>(left[k / 8 + 1][0], left[k / 8 + 1][1]), packed_pair<T>(left[k / 8 + 1][2], left[k / 8 + 1][3])};
#pragma unroll
    for (unsigned d = 0; d < D; d += 16) {
      uint32_t b[4];
      load_matrices_transposed(b, right_at + k * kStride<D> + d);
      multiply_add<T>(to[d / 8], a, b[0], b[1]);
      multiply_add<T>(to[d / 8 + 1], a, b[2], b[3]);
    }
  }
}

template <unsigned N>
CKPT_ON_DEVICE void clear(float (&values)[N][4]) {
#pragma unroll
  for (unsigned n = 0; n < N; ++n)
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) values[n][i] = 0.0f;
}

// The lanes that share a row.
CKPT_ON_DEVICE float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 2));
}
CKPT_ON_DEVICE float row_sum(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, 1);
  return value + __shfl_xor_sync(kWholeWarp, value, 2);
}

// Which of this lane's weights of a tile are kept: bit 4 n + i for element [n][i]. The warp's lanes draw each word once, as bits of
// runs of consecutive columns, and pass the bits on. `first`: the mask's element at the tile's first row and column of this warp.
//
// Rows are queries: a lane draws half a row.
template <unsigned N>
CKPT_ON_DEVICE uint32_t kept_by_rows(const Words4 &words, uint32_t last, uint64_t first, uint32_t sequence) {
  static_assert(N * 4 / 8 <= 32);
  const unsigned lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const uint32_t mine = kept_bits<N / 2>(words, last, first + static_cast<uint64_t>(lane / 2) * sequence + lane % 2 * (N / 2));
  uint32_t out = 0;
#pragma unroll
  for (unsigned r = 0; r < 2; ++r)
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const uint32_t bits = __shfl_sync(kWholeWarp, mine, static_cast<int>((g + 8 * r) * 2 + half)) >> (2 * t);
#pragma unroll
      for (unsigned n = 0; n < N / 16; ++n) out |= (bits >> (8 * n) & 3u) << (4 * (half * (N / 16) + n) + 2 * r);
    }
  return out;
}
// Columns are queries, rows are keys: a lane draws the 16 keys of a query.
template <unsigned N>
CKPT_ON_DEVICE uint32_t kept_by_columns(const Words4 &words, uint32_t last, uint64_t first, uint32_t sequence) {
  static_assert(N % kWarp == 0 && N * 4 / 8 <= 32);
  const unsigned lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  uint32_t out = 0;
#pragma unroll
  for (unsigned query = 0; query < N; query += kWarp) {
    const uint32_t mine = kept_bits<16>(words, last, first + static_cast<uint64_t>(query + lane) * sequence);
#pragma unroll
    for (unsigned n = 0; n < kWarp / 8; ++n)
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) {
        const uint32_t bits = __shfl_sync(kWholeWarp, mine, static_cast<int>(8 * n + 2 * t + i)) >> g;
        out |= ((bits & 1u) << i | (bits >> 8 & 1u) << (2 + i)) << (4 * (query / 8 + n));
      }
  }
  return out;
}

// A warp's 16 rows of sums to global memory, by way of `shared`, 16 rows that are the warp's own. A lane's two rows are multiplied by
// `upper` and `lower`.
template <unsigned D, class T>
CKPT_ON_DEVICE void store_rows(const Attention &a, T *shared, const float (&sums)[D / 8][4], float upper, float lower, T *to, size_t ld,
                               uint32_t rows) {
  const unsigned lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (unsigned n = 0; n < D / 8; ++n) {
    T *const at = shared + g * kStride<D> + n * 8 + 2 * t;
    *reinterpret_cast<uint32_t *>(at) = packed_pair<T>(sums[n][0] * upper, sums[n][1] * upper);
    *reinterpret_cast<uint32_t *>(at + 8 * kStride<D>) = packed_pair<T>(sums[n][2] * lower, sums[n][3] * lower);
  }
  __syncwarp();
  if (a.vectors != 0) {
#pragma unroll
    for (unsigned k = 0; k < kRowsOfWarp * D / 8 / kWarp; ++k) {
      const unsigned index = k * kWarp + lane, row = index / (D / 8), column = index % (D / 8) * 8;
      if (row < rows && column < a.head_size)
        *reinterpret_cast<uint4 *>(to + row * ld + column) = *reinterpret_cast<const uint4 *>(shared + row * kStride<D> + column);
    }
  } else {
    for (unsigned index = lane; index < kRowsOfWarp * D; index += kWarp) {
      const unsigned row = index / D, column = index % D;
      if (row < rows && column < a.head_size) to[row * ld + column] = shared[row * kStride<D> + column];
    }
  }
}

CKPT_ON_DEVICE uint32_t rows_from(uint32_t first, uint32_t sequence) { return first < sequence ? sequence - first : 0; }

// out = softmax(q k^T * scale) v with a running maximum. Keys of the next tile are on their way during the product with the values, values
// during the product with the keys.
template <class T, unsigned D>
__global__ void __launch_bounds__(kThreads, D <= 64 ? 3 : 2) forward(const Attention a, const T *qkv, float *lse, T *out) {
  CKPT_DYNAMIC_SHARED(T, shared);
  T *const q = shared, *const k = q + kRows * kStride<D>, *const v = k + kKeys * kStride<D>;
  const Place place(a);
  const uint32_t first = (a.tiles - 1 - place.tile) * kRows;
  const size_t ld = size_t{3} * a.channels;
  const T *const queries = qkv + place.in_qkv(a), *const keys = queries + a.channels, *const values = keys + a.channels;
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const uint32_t row = first + warp * kRowsOfWarp + g, end = first + kRows < a.sequence ? first + kRows : a.sequence;

  Copies copies;
  stream_rows<D, kRows>(copies, a, q, queries + first * ld, ld, a.sequence - first);
  stream_rows<D, kKeys>(copies, a, k, keys, ld, a.sequence);
  copies.commit();
  uint32_t q_of_lane[D / 16][4];
  float sums[D / 8][4], most[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
  clear(sums);
#pragma unroll 1
  for (uint32_t column = 0; column < end; column += kKeys) {
    copies.wait<0>();
    __syncthreads();  // the keys are there, and nobody reads the values before these any more
    stream_rows<D, kKeys>(copies, a, v, values + column * ld, ld, a.sequence - column);
    copies.commit();
    if (column == 0) {
      const T *const at = left_of_lane<D>(q + warp * kRowsOfWarp * kStride<D>);
#pragma unroll
      for (unsigned d = 0; d < D; d += 16) load_matrices(q_of_lane[d / 16], at + d);
    }
    float p[kKeys / 8][4];
    clear(p);
#pragma unroll
    for (unsigned d = 0; d < D; d += 16) add_product_with_rows<D, kKeys>(p, q_of_lane[d / 16], right_of_lane<D>(k), d);
    copies.wait<0>();
    __syncthreads();  // the values are there, and nobody reads the keys any more
    if (column + kKeys < end) {
      stream_rows<D, kKeys>(copies, a, k, keys + (column + kKeys) * ld, ld, a.sequence - column - kKeys);
      copies.commit();
    }
    if (column + kKeys > first) {  // the diagonal crosses this tile
#pragma unroll
      for (unsigned n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i)
          if (column + n * 8 + 2 * t + i % 2 > row + i / 2 * 8) p[n][i] = -INFINITY;
    }
#pragma unroll
    for (unsigned r = 0; r < 2; ++r) {
      float now = most[r];
#pragma unroll
      for (unsigned n = 0; n < kKeys / 8; ++n) now = fmaxf(now, fmaxf(p[n][2 * r], p[n][2 * r + 1]));
      now = row_max(now);
      const float correction = fast_exp2((most[r] - now) * a.to_exponent), shift = -now * a.to_exponent;
      most[r] = now;
      sum[r] *= correction;
#pragma unroll
      for (unsigned n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (unsigned i = 2 * r; i < 2 * r + 2; ++i) sum[r] += p[n][i] = fast_exp2(fused(p[n][i], a.to_exponent, shift));
#pragma unroll
      for (unsigned n = 0; n < D / 8; ++n) {
        sums[n][2 * r] *= correction;
        sums[n][2 * r + 1] *= correction;
      }
    }
    if (a.drops != 0) {
      const uint32_t kept = kept_by_rows<kKeys>(Words4(a.dropout.philox), a.dropout.last,
                                                place.in_weights(a) + static_cast<uint64_t>(row - g) * a.sequence + column, a.sequence);
#pragma unroll
      for (unsigned n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i)
          if ((kept >> (4 * n + i) & 1u) == 0) p[n][i] = 0.0f;
    }
    add_product_with_columns<D, kKeys>(sums, p, v);
  }
  float factor[2];
#pragma unroll
  for (unsigned r = 0; r < 2; ++r) {
    sum[r] = row_sum(sum[r]);
    factor[r] = a.dropout.scale / sum[r];
    if (t == 0 && row + 8 * r < a.sequence) lse[place.in_rows(a) + row + 8 * r] = fused(most[r], a.scale, logf(sum[r]));
  }
  T *const to = out + place.in_out(a) + (row - g) * static_cast<size_t>(a.channels);
  store_rows<D>(a, q + warp * kRowsOfWarp * kStride<D>, sums, factor[0], factor[1], to, a.channels, rows_from(row - g, a.sequence));
}

// What a block of the backward kernel makes of its rows: their queries' gradients; their keys' and values' gradients; or, of stored
// weights, each row's sum of weight * weight's gradient, which the other two need.
enum class Pass : uint32_t { queries, keys, dots };

// Weights are made again from lse, or read (kStored). `dots` is read but in its own pass.
template <class T, unsigned D, Pass kPass, bool kStored>
__global__ void __launch_bounds__(kThreads, D <= 64 && !kStored ? 3 : 2)
    backward(const Attention a, const T *qkv, const T *weights, const float *lse, const T *out_grad, float *dots, T *qkv_grad) {
  constexpr unsigned N = kStreamed<D>;
  constexpr bool kOfKeys = kPass == Pass::keys;
  CKPT_DYNAMIC_SHARED(T, shared);
  // Rows: queries and gradients of the output, or keys and values; tiles: the other two.
  T *const left1 = shared, *const left2 = left1 + kRows * kStride<D>, *const right = left2 + kRows * kStride<D>;
  float *const statistics = reinterpret_cast<float *>(right + 4 * N * kStride<D>);
  const Place place(a);
  const uint32_t first = (kOfKeys ? place.tile : a.tiles - 1 - place.tile) * kRows;
  const size_t ld = size_t{3} * a.channels, grad_ld = a.channels;
  const T *const q = qkv + place.in_qkv(a), *const k = q + a.channels, *const v = k + a.channels, *const grad = out_grad + place.in_out(a);
  const float *const lse_of_head = lse + place.in_rows(a);
  float *const dots_of_head = dots + place.in_rows(a);
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const uint32_t row = first + warp * kRowsOfWarp + g;
  const uint32_t begin = kOfKeys ? first : 0, end = kOfKeys || first + kRows > a.sequence ? a.sequence : first + kRows;
  T *const left1_of_warp = left1 + warp * kRowsOfWarp * kStride<D>, *const left2_of_warp = left2 + warp * kRowsOfWarp * kStride<D>;

  Copies copies;
  const auto stream = [&](uint32_t column, unsigned stage) {
    T *const to1 = right + stage * (2 * N * kStride<D>), *const to2 = to1 + N * kStride<D>;
    const uint32_t rows = a.sequence - column;
    if constexpr (kPass != Pass::dots) stream_rows<D, N>(copies, a, to1, (kOfKeys ? q : k) + column * ld, ld, rows);
    stream_rows<D, N>(copies, a, to2, kOfKeys ? grad + column * grad_ld : v + column * ld, kOfKeys ? grad_ld : ld, rows);
    if constexpr (kOfKeys) {
      const unsigned index = threadIdx.x % N;
      const bool inside = index < rows;
      float *const to = statistics + stage * (2 * N) + index;
      if (threadIdx.x < N) copies.word(to, dots_of_head + column + (inside ? index : 0), inside);
      else if (!kStored && threadIdx.x < 2 * N) copies.word(to + N, lse_of_head + column + (inside ? index : 0), inside);
    }
  };
  if constexpr (!kStored) stream_rows<D, kRows>(copies, a, left1, (kOfKeys ? k : q) + first * ld, ld, a.sequence - first);
  stream_rows<D, kRows>(copies, a, left2, kOfKeys ? v + first * ld : grad + first * grad_ld, kOfKeys ? ld : grad_ld, a.sequence - first);
  stream(begin, 0);
  copies.commit();

  float lse_of_row[2] = {0.0f, 0.0f}, dot_of_row[2] = {0.0f, 0.0f};
  if constexpr (kPass == Pass::queries) {
#pragma unroll
    for (unsigned r = 0; r < 2; ++r)
      if (row + 8 * r < a.sequence) {
        if constexpr (!kStored) lse_of_row[r] = lse_of_head[row + 8 * r] * -kLog2E;
        dot_of_row[r] = dots_of_head[row + 8 * r];
      }
  }
  constexpr unsigned kSums = kPass == Pass::dots ? 1 : D / 8, kValueSums = kOfKeys ? D / 8 : 1;
  float sums[kSums][4], value_sums[kValueSums][4];
  clear(sums);
  clear(value_sums);
  unsigned stage = 0;
#pragma unroll 1
  for (uint32_t column = begin; column < end; column += N, stage ^= 1) {
    if (column + N < end) stream(column + N, stage ^ 1);
    copies.commit();
    copies.wait<1>();
    __syncthreads();  // this tile is there
    const T *const right1 = right + stage * (2 * N * kStride<D>), *const right2 = right1 + N * kStride<D>;
    const float *const of_columns = statistics + stage * (2 * N);
    const bool edge = kOfKeys ? column < first + kRows || column + N > a.sequence : column + N > first;
    // Above the diagonal, or (rows are keys) a query that does not exist.
    const auto outside = [&](unsigned n, unsigned i) {
      const uint32_t this_row = row + i / 2 * 8, this_column = column + n * 8 + 2 * t + i % 2;
      return kOfKeys ? this_row > this_column || this_column >= a.sequence : this_column > this_row;
    };

    uint32_t kept = ~0u;
    if (a.drops != 0) {
      const uint32_t corner = row - g;
      const Words4 words(a.dropout.philox);
      if constexpr (kOfKeys)
        kept = kept_by_columns<N>(words, a.dropout.last, place.in_weights(a) + static_cast<uint64_t>(column) * a.sequence + corner, a.sequence);
      else
        kept = kept_by_rows<N>(words, a.dropout.last, place.in_weights(a) + static_cast<uint64_t>(corner) * a.sequence + column, a.sequence);
    }
    float p[N / 8][4];
    if constexpr (kStored) {
#pragma unroll
      for (unsigned n = 0; n < N / 8; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          const uint32_t this_row = row + i / 2 * 8, this_column = column + n * 8 + 2 * t + i % 2;
          const uint64_t query = kOfKeys ? this_column : this_row, key = kOfKeys ? this_row : this_column;
          p[n][i] = outside(n, i) || query >= a.sequence ? 0.0f : as_float(weights[place.in_weights(a) + query * a.sequence + key]);
        }
    } else {
      clear(p);
      add_product_with_rows<D, N>(p, left1_of_warp, right1);
#pragma unroll
      for (unsigned n = 0; n < N / 8; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          const float shift = kOfKeys ? of_columns[N + n * 8 + 2 * t + i % 2] * -kLog2E : lse_of_row[i / 2];
          p[n][i] = edge && outside(n, i) ? 0.0f : fast_exp2(fused(p[n][i], a.to_exponent, shift));
        }
    }
    if constexpr (kOfKeys) {
      float used[N / 8][4];
#pragma unroll
      for (unsigned n = 0; n < N / 8; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) used[n][i] = (kept >> (4 * n + i) & 1u) != 0 ? p[n][i] : 0.0f;
      add_product_with_columns<D, N>(value_sums, used, right2);
    }
    float p_grad[N / 8][4];
    clear(p_grad);
    add_product_with_rows<D, N>(p_grad, left2_of_warp, right2);
#pragma unroll
    for (unsigned n = 0; n < N / 8; ++n)
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const float through = (kept >> (4 * n + i) & 1u) != 0 ? p_grad[n][i] * a.dropout.scale : 0.0f;
        if constexpr (kPass == Pass::dots) {
          dot_of_row[i / 2] += p[n][i] * through;
        } else {
          const float dot = kOfKeys ? of_columns[n * 8 + 2 * t + i % 2] : dot_of_row[i / 2];
          p_grad[n][i] = p[n][i] * (through - dot);
        }
      }
    if constexpr (kPass != Pass::dots) add_product_with_columns<D, N>(sums, p_grad, right1);
    __syncthreads();  // nobody reads this tile any more
  }
  if constexpr (kPass == Pass::dots) {
#pragma unroll
    for (unsigned r = 0; r < 2; ++r) {
      const float dot = row_sum(dot_of_row[r]);
      if (t == 0 && row + 8 * r < a.sequence) dots_of_head[row + 8 * r] = dot;
    }
  } else {
    T *const to = qkv_grad + place.in_qkv(a) + (row - g) * ld + (kOfKeys ? a.channels : 0);
    const uint32_t rows = rows_from(row - g, a.sequence);
    store_rows<D>(a, left1_of_warp, sums, a.scale, a.scale, to, ld, rows);
    if constexpr (kOfKeys) {
      store_rows<D>(a, left2_of_warp, value_sums, a.dropout.scale, a.dropout.scale, to + a.channels, ld, rows);
    }
  }
}

// weights = exp(score - lse), zero above the diagonal.
template <class T, unsigned D>
__global__ void __launch_bounds__(kThreads, D <= 64 ? 3 : 2) write_weights(const Attention a, const T *qkv, const float *lse, T *weights) {
  CKPT_DYNAMIC_SHARED(T, shared);
  T *const q = shared, *const k = q + kRows * kStride<D>;
  const Place place(a);
  const uint32_t first = (a.tiles - 1 - place.tile) * kRows;
  const size_t ld = size_t{3} * a.channels;
  const T *const queries = qkv + place.in_qkv(a), *const keys = queries + a.channels;
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const uint32_t row = first + warp * kRowsOfWarp + g;
  float shift[2] = {0.0f, 0.0f};
#pragma unroll
  for (unsigned r = 0; r < 2; ++r)
    if (row + 8 * r < a.sequence) shift[r] = lse[place.in_rows(a) + row + 8 * r] * -kLog2E;

  Copies copies;
  stream_rows<D, kRows>(copies, a, q, queries + first * ld, ld, a.sequence - first);
  for (uint32_t column = 0; column < a.sequence; column += kKeys) {
    float p[kKeys / 8][4];
    clear(p);
    const bool below = column < first + kRows;
    if (below) {
      stream_rows<D, kKeys>(copies, a, k, keys + column * ld, ld, a.sequence - column);
      copies.commit();
      copies.wait<0>();
      __syncthreads();
      add_product_with_rows<D, kKeys>(p, q + warp * kRowsOfWarp * kStride<D>, k);
      __syncthreads();
    }
#pragma unroll
    for (unsigned n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const uint32_t this_row = row + i / 2 * 8, this_column = column + n * 8 + 2 * t + i % 2;
        if (this_row < a.sequence && this_column < a.sequence)
          weights[place.in_weights(a) + static_cast<uint64_t>(this_row) * a.sequence + this_column] =
              rounded<T>(below && this_column <= this_row ? fast_exp2(fused(p[n][i], a.to_exponent, shift[i / 2])) : 0.0f);
      }
  }
}

}  // namespace ckpt::ops::cuda::tensor
