// Attention by float32 multiply-adds: float32, whose products tensor cores would round, and the largest heads of the 16-bit types,
// whose sums would not fit a tensor-core kernel's registers. Shared memory holds float32 whatever the type; a block is 16 x 16
// threads, each with a small rectangle of every product: rows y * R ..., columns x, x + 16, ...
#pragma once

#include "ops/cuda/async_copy.h"
#include "ops/cuda/attention_mma.h"

namespace ckpt::ops::cuda::plain_float {

using tensor::Pass;

// 8 warps. The 16 threads of one y are half a warp: they share rows, so a row's sums and weights never leave the warp.
constexpr unsigned kSide = 16, kThreads = kSide * kSide;

// Rows of a block and of a tile, so that a block stays below the 99 KiB that the smallest of these devices gives it.
template <unsigned D>
struct Forward {
  static constexpr unsigned kRows = D <= 128 ? 64 : 32, kTile = D <= 64 ? 64 : D <= 128 ? 32 : 16;
};
template <unsigned D>
struct Backward {
  static constexpr unsigned kRows = D <= 64 ? 64 : D <= 128 ? 32 : 16, kTile = D <= 128 ? 32 : 16;
};

// 16 bytes longer than its elements: 8 rows read at once lie in different banks.
template <unsigned D>
constexpr unsigned kStride = D + 4;

template <unsigned D>
constexpr size_t forward_bytes() {
  using S = Forward<D>;
  return ((S::kRows + 2 * S::kTile) * kStride<D> + S::kRows * kStride<S::kTile>) * sizeof(float) + S::kRows * S::kTile / 16 * sizeof(uint16_t);
}
template <unsigned D>
constexpr size_t backward_bytes() {
  using S = Backward<D>;
  return (2 * (S::kRows + S::kTile) * kStride<D> + 2 * S::kRows * kStride<S::kTile> + 2 * S::kTile) * sizeof(float) +
         S::kRows * S::kTile / 16 * sizeof(uint16_t);
}

template <unsigned D, unsigned kCount, class T>
CKPT_ON_DEVICE void stream_rows(Copies &copies, const Attention &a, float *to, const T *from, size_t ld, uint32_t rows) {
  constexpr unsigned kVectors = D / 4;
  if (sizeof(T) == sizeof(float) && a.vectors != 0) {
    for (unsigned index = threadIdx.x; index < kCount * kVectors; index += kThreads) {
      const unsigned row = index / kVectors, column = index % kVectors * 4;
      const bool inside = row < rows && column < a.head_size;
      copies.vector(to + row * kStride<D> + column, from + (inside ? row * ld + column : 0), inside);
    }
  } else {
    for (unsigned index = threadIdx.x; index < kCount * D; index += kThreads) {
      const unsigned row = index / D, column = index % D;
      to[row * kStride<D> + column] = row < rows && column < a.head_size ? as_float(from[row * ld + column]) : 0.0f;
    }
  }
}

CKPT_ON_DEVICE float4 four(const float *from) { return *reinterpret_cast<const float4 *>(from); }

// to[i][j] += left row i of this thread . right row x + 16 j
template <unsigned D, unsigned R, unsigned C>
CKPT_ON_DEVICE void add_product_with_rows(float (&to)[R][C], const float *left, const float *right) {
  const float *const right_at = right + threadIdx.x % kSide * kStride<D>;
#pragma unroll 2
  for (unsigned d = 0; d < D; d += 4) {
    float4 l[R];
#pragma unroll
    for (unsigned i = 0; i < R; ++i) l[i] = four(left + i * kStride<D> + d);
#pragma unroll
    for (unsigned j = 0; j < C; ++j) {
      const float4 r = four(right_at + j * (kSide * kStride<D>) + d);
#pragma unroll
      for (unsigned i = 0; i < R; ++i)
        to[i][j] = fused(l[i].w, r.w, fused(l[i].z, r.z, fused(l[i].y, r.y, fused(l[i].x, r.x, to[i][j]))));
    }
  }
}

// A thread's columns of a product as wide as a head: runs of kRun, 16 runs apart.
template <unsigned D>
constexpr unsigned kRun = D >= 64 ? 4 : 2;

// to [R][D / 16] += left rows (N wide) * right [N, D]
template <unsigned D, unsigned N, unsigned R>
CKPT_ON_DEVICE void add_product_with_columns(float (&to)[R][D / kSide], const float *left, const float *right) {
  const float *const right_at = right + threadIdx.x % kSide * kRun<D>;
#pragma unroll 1
  for (unsigned n = 0; n < N; n += 4) {
    float4 l[R];
#pragma unroll
    for (unsigned i = 0; i < R; ++i) l[i] = four(left + i * kStride<N> + n);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k)
#pragma unroll
      for (unsigned c = 0; c < D / kSide; c += kRun<D>) {
        const float *const at = right_at + (n + k) * kStride<D> + c * kSide;
        float r[kRun<D>];
        if constexpr (kRun<D> == 4) {
          const float4 all = four(at);
          r[0] = all.x, r[1] = all.y, r[2] = all.z, r[3] = all.w;
        } else {
          const float2 both = *reinterpret_cast<const float2 *>(at);
          r[0] = both.x, r[1] = both.y;
        }
#pragma unroll
        for (unsigned i = 0; i < R; ++i) {
          const float by = k == 0 ? l[i].x : k == 1 ? l[i].y : k == 2 ? l[i].z : l[i].w;
#pragma unroll
          for (unsigned e = 0; e < kRun<D>; ++e) to[i][c + e] = fused(by, r[e], to[i][c + e]);
        }
      }
  }
}

template <unsigned R, unsigned C>
CKPT_ON_DEVICE void clear(float (&values)[R][C]) {
#pragma unroll
  for (unsigned i = 0; i < R; ++i)
#pragma unroll
    for (unsigned j = 0; j < C; ++j) values[i][j] = 0.0f;
}

CKPT_ON_DEVICE float row_max(float value) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, step));
  return value;
}
CKPT_ON_DEVICE float row_sum(float value) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

// Bits of the mask for kQueries x kKeys weights from (query, key) on: bits[query][key / 16], bit key % 16.
template <unsigned kQueries, unsigned kKeys>
CKPT_ON_DEVICE void draw_bits(const Attention &a, uint64_t first, uint16_t *bits) {
  const Words4 words(a.dropout.philox);
  for (unsigned index = threadIdx.x; index < kQueries * kKeys / 16; index += kThreads)
    bits[index] = static_cast<uint16_t>(
        kept_bits<16>(words, a.dropout.last, first + static_cast<uint64_t>(index / (kKeys / 16)) * a.sequence + index % (kKeys / 16) * 16));
}

// This thread's rows of sums, each times its factor.
template <unsigned D, unsigned R, class T>
CKPT_ON_DEVICE void store_rows(const Attention &a, const float (&sums)[R][D / kSide], const float (&factors)[R], T *to, size_t ld, uint32_t rows) {
#pragma unroll
  for (unsigned i = 0; i < R; ++i)
#pragma unroll
    for (unsigned c = 0; c < D / kSide; ++c) {
      const unsigned column = (c / kRun<D> * kSide + threadIdx.x % kSide) * kRun<D> + c % kRun<D>;
      if (i < rows && column < a.head_size) to[i * ld + column] = rounded<T>(sums[i][c] * factors[i]);
    }
}

template <class T, unsigned D>
__global__ void __launch_bounds__(kThreads, 2) forward(const Attention a, const T *qkv, float *lse, T *out) {
  using S = Forward<D>;
  constexpr unsigned R = S::kRows / kSide, C = S::kTile / kSide;
  CKPT_DYNAMIC_SHARED(float, shared);
  float *const q = shared, *const k = q + S::kRows * kStride<D>, *const v = k + S::kTile * kStride<D>, *const weights = v + S::kTile * kStride<D>;
  uint16_t *const bits = reinterpret_cast<uint16_t *>(weights + S::kRows * kStride<S::kTile>);
  const Place place(a);
  const uint32_t first = (a.tiles - 1 - place.tile) * S::kRows;
  const size_t ld = size_t{3} * a.channels;
  const T *const queries = qkv + place.in_qkv(a), *const keys = queries + a.channels, *const values = keys + a.channels;
  const unsigned x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const uint32_t row = first + y * R, end = first + S::kRows < a.sequence ? first + S::kRows : a.sequence;
  const float *const q_rows = q + y * R * kStride<D>;
  float *const weights_rows = weights + y * R * kStride<S::kTile>;

  Copies copies;
  stream_rows<D, S::kRows>(copies, a, q, queries + first * ld, ld, a.sequence - first);
  float sums[R][D / kSide], most[R], sum[R];
  clear(sums);
#pragma unroll
  for (unsigned i = 0; i < R; ++i) most[i] = -INFINITY, sum[i] = 0.0f;
  for (uint32_t column = 0; column < end; column += S::kTile) {
    stream_rows<D, S::kTile>(copies, a, k, keys + column * ld, ld, a.sequence - column);
    copies.commit();
    stream_rows<D, S::kTile>(copies, a, v, values + column * ld, ld, a.sequence - column);
    copies.commit();
    if (a.drops != 0) draw_bits<S::kRows, S::kTile>(a, place.in_weights(a) + static_cast<uint64_t>(first) * a.sequence + column, bits);
    copies.wait<1>();
    __syncthreads();  // the keys are there
    float p[R][C];
    clear(p);
    add_product_with_rows<D>(p, q_rows, k);
#pragma unroll
    for (unsigned i = 0; i < R; ++i) {
      float now = most[i];
#pragma unroll
      for (unsigned j = 0; j < C; ++j) {
        p[i][j] = column + j * kSide + x > row + i ? -INFINITY : p[i][j] * a.scale;
        now = fmaxf(now, p[i][j]);
      }
      now = row_max(now);
      const float correction = expf(most[i] - now);
      most[i] = now;
      sum[i] *= correction;
#pragma unroll
      for (unsigned j = 0; j < C; ++j) {
        const float weight = expf(p[i][j] - now);
        sum[i] += weight;
        const bool kept = a.drops == 0 || (bits[(y * R + i) * (S::kTile / 16) + j] >> x & 1) != 0;
        weights_rows[i * kStride<S::kTile> + j * kSide + x] = kept ? weight : 0.0f;
      }
#pragma unroll
      for (unsigned c = 0; c < D / kSide; ++c) sums[i][c] *= correction;
    }
    copies.wait<0>();
    __syncthreads();  // the values are there; so are the row's weights
    add_product_with_columns<D, S::kTile>(sums, weights_rows, v);
    __syncthreads();  // nobody reads this tile any more
  }
  float factors[R];
#pragma unroll
  for (unsigned i = 0; i < R; ++i) {
    sum[i] = row_sum(sum[i]);
    factors[i] = a.dropout.scale / sum[i];
    if (x == 0 && row + i < a.sequence) lse[place.in_rows(a) + row + i] = most[i] + logf(sum[i]);
  }
  store_rows<D>(a, sums, factors, out + place.in_out(a) + row * static_cast<size_t>(a.channels), a.channels, tensor::rows_from(row, a.sequence));
}

template <class T, unsigned D, Pass kPass, bool kStored>
__global__ void __launch_bounds__(kThreads, 2) backward(const Attention a, const T *qkv, const T *weights, const float *lse, const T *out_grad,
                                                     float *dots, T *qkv_grad) {
  using S = Backward<D>;
  constexpr unsigned R = S::kRows / kSide, C = S::kTile / kSide, N = S::kTile;
  constexpr bool kOfKeys = kPass == Pass::keys;
  CKPT_DYNAMIC_SHARED(float, shared);
  float *const left1 = shared, *const left2 = left1 + S::kRows * kStride<D>, *const right1 = left2 + S::kRows * kStride<D>,
               *const right2 = right1 + N * kStride<D>, *const p_tile = right2 + N * kStride<D>, *const score_tile = p_tile + S::kRows * kStride<N>,
               *const of_columns = score_tile + S::kRows * kStride<N>;
  uint16_t *const bits = reinterpret_cast<uint16_t *>(of_columns + 2 * N);
  const Place place(a);
  const uint32_t first = (kOfKeys ? place.tile : a.tiles - 1 - place.tile) * S::kRows;
  const size_t ld = size_t{3} * a.channels, grad_ld = a.channels;
  const T *const q = qkv + place.in_qkv(a), *const k = q + a.channels, *const v = k + a.channels, *const grad = out_grad + place.in_out(a);
  const float *const lse_of_head = lse + place.in_rows(a);
  float *const dots_of_head = dots + place.in_rows(a);
  const unsigned x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const uint32_t row = first + y * R;
  const uint32_t begin = kOfKeys ? first / N * N : 0, end = kOfKeys || first + S::kRows > a.sequence ? a.sequence : first + S::kRows;
  const float *const left1_rows = left1 + y * R * kStride<D>, *const left2_rows = left2 + y * R * kStride<D>;
  float *const p_rows = p_tile + y * R * kStride<N>, *const score_rows = score_tile + y * R * kStride<N>;

  Copies copies;
  if constexpr (!kStored) stream_rows<D, S::kRows>(copies, a, left1, (kOfKeys ? k : q) + first * ld, ld, a.sequence - first);
  stream_rows<D, S::kRows>(copies, a, left2, kOfKeys ? v + first * ld : grad + first * grad_ld, kOfKeys ? ld : grad_ld, a.sequence - first);
  float lse_of_row[R], dot_of_row[R];
#pragma unroll
  for (unsigned i = 0; i < R; ++i) {
    const bool there = kPass == Pass::queries && row + i < a.sequence;
    lse_of_row[i] = !kStored && there ? lse_of_head[row + i] : 0.0f;
    dot_of_row[i] = there ? dots_of_head[row + i] : 0.0f;
  }
  constexpr unsigned kSums = kPass == Pass::dots ? 1 : D / kSide, kValueSums = kOfKeys ? D / kSide : 1;
  float sums[R][kSums], value_sums[R][kValueSums];
  clear(sums);
  clear(value_sums);
  for (uint32_t column = begin; column < end; column += N) {
    const uint32_t rows = a.sequence - column;
    if constexpr (kPass != Pass::dots) stream_rows<D, N>(copies, a, right1, (kOfKeys ? q : k) + column * ld, ld, rows);
    stream_rows<D, N>(copies, a, right2, kOfKeys ? grad + column * grad_ld : v + column * ld, kOfKeys ? grad_ld : ld, rows);
    copies.commit();
    if (kOfKeys && threadIdx.x < N) {
      of_columns[threadIdx.x] = threadIdx.x < rows ? dots_of_head[column + threadIdx.x] : 0.0f;
      if (!kStored) of_columns[N + threadIdx.x] = threadIdx.x < rows ? lse_of_head[column + threadIdx.x] : 0.0f;
    }
    if (a.drops != 0) {
      if constexpr (kOfKeys) draw_bits<N, S::kRows>(a, place.in_weights(a) + static_cast<uint64_t>(column) * a.sequence + first, bits);
      else draw_bits<S::kRows, N>(a, place.in_weights(a) + static_cast<uint64_t>(first) * a.sequence + column, bits);
    }
    copies.wait<0>();
    __syncthreads();  // the tile is there
    float p[R][C], p_grad[R][C];
    clear(p);
    clear(p_grad);
    if constexpr (!kStored) add_product_with_rows<D>(p, left1_rows, right1);
    add_product_with_rows<D>(p_grad, left2_rows, right2);
#pragma unroll
    for (unsigned i = 0; i < R; ++i)
#pragma unroll
      for (unsigned j = 0; j < C; ++j) {
        const unsigned c = j * kSide + x;
        const uint32_t query = kOfKeys ? column + c : row + i, key = kOfKeys ? row + i : column + c;
        float weight = 0.0f;
        if (key <= query && query < a.sequence) {
          if constexpr (kStored) weight = as_float(weights[place.in_weights(a) + static_cast<uint64_t>(query) * a.sequence + key]);
          else weight = expf(fused(p[i][j], a.scale, -(kOfKeys ? of_columns[N + c] : lse_of_row[i])));
        }
        const unsigned own = y * R + i;  // row of the block
        const uint32_t run = a.drops == 0 ? ~0u : kOfKeys ? bits[c * (S::kRows / 16) + own / 16] >> own % 16 : bits[own * (N / 16) + j] >> x;
        const bool kept = (run & 1u) != 0;
        const float through = kept ? p_grad[i][j] * a.dropout.scale : 0.0f;
        if constexpr (kPass == Pass::dots) {
          dot_of_row[i] = fused(weight, through, dot_of_row[i]);
        } else {
          score_rows[i * kStride<N> + c] = weight * (through - (kOfKeys ? of_columns[c] : dot_of_row[i]));
          if constexpr (kOfKeys) p_rows[i * kStride<N> + c] = kept ? weight : 0.0f;
        }
      }
    if constexpr (kPass != Pass::dots) {
      __syncwarp();  // a row of the two tiles is written and read by the same half of a warp
      add_product_with_columns<D, N>(sums, score_rows, right1);
      if constexpr (kOfKeys) add_product_with_columns<D, N>(value_sums, p_rows, right2);
    }
    __syncthreads();  // nobody reads this tile any more
  }
  if constexpr (kPass == Pass::dots) {
#pragma unroll
    for (unsigned i = 0; i < R; ++i) {
      const float dot = row_sum(dot_of_row[i]);
      if (x == 0 && row + i < a.sequence) dots_of_head[row + i] = dot;
    }
  } else {
    T *const to = qkv_grad + place.in_qkv(a) + row * ld + (kOfKeys ? a.channels : 0);
    const uint32_t rows = tensor::rows_from(row, a.sequence);
    float factors[R];
#pragma unroll
    for (unsigned i = 0; i < R; ++i) factors[i] = a.scale;
    store_rows<D>(a, sums, factors, to, ld, rows);
    if constexpr (kOfKeys) {
#pragma unroll
      for (unsigned i = 0; i < R; ++i) factors[i] = a.dropout.scale;
      store_rows<D>(a, value_sums, factors, to + a.channels, ld, rows);
    }
  }
}

template <class T, unsigned D>
__global__ void __launch_bounds__(kThreads, 2) write_weights(const Attention a, const T *qkv, const float *lse, T *weights) {
  using S = Forward<D>;
  constexpr unsigned R = S::kRows / kSide, C = S::kTile / kSide;
  CKPT_DYNAMIC_SHARED(float, shared);
  float *const q = shared, *const k = q + S::kRows * kStride<D>;
  const Place place(a);
  const uint32_t first = (a.tiles - 1 - place.tile) * S::kRows;
  const size_t ld = size_t{3} * a.channels;
  const T *const queries = qkv + place.in_qkv(a), *const keys = queries + a.channels;
  const unsigned x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  const uint32_t row = first + y * R;
  Copies copies;
  stream_rows<D, S::kRows>(copies, a, q, queries + first * ld, ld, a.sequence - first);
  for (uint32_t column = 0; column < a.sequence; column += S::kTile) {
    float p[R][C];
    clear(p);
    if (column < first + S::kRows) {
      stream_rows<D, S::kTile>(copies, a, k, keys + column * ld, ld, a.sequence - column);
      copies.commit();
      copies.wait<0>();
      __syncthreads();
      add_product_with_rows<D>(p, q + y * R * kStride<D>, k);
      __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < R; ++i) {
      if (row + i >= a.sequence) break;
      const float lse_of_row = lse[place.in_rows(a) + row + i];
#pragma unroll
      for (unsigned j = 0; j < C; ++j) {
        const uint32_t key = column + j * kSide + x;
        if (key < a.sequence)
          weights[place.in_weights(a) + static_cast<uint64_t>(row + i) * a.sequence + key] =
              rounded<T>(key <= row + i ? expf(fused(p[i][j], a.scale, -lse_of_row)) : 0.0f);
      }
    }
  }
}

}  // namespace ckpt::ops::cuda::plain_float
