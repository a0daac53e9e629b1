// Sums over columns of [rows, columns], in two stages whose order the shape fixes: chunks of rows, each to a row of float32 partial sums
// in the workspace, then those rows in order onto the gradient.
//
// First stage: blocks of 32 x kColumnRows threads; a thread takes one vector of columns and every kColumnRows-th row of a chunk. The kernel adds up a
// thread's sums itself and gives them to store_columns.
#pragma once

#include "ops/cuda/element.h"
#include "ops/cuda/table.h"

namespace ckpt::ops::cuda {

constexpr unsigned kColumnRows = 8;
constexpr unsigned kColumnBlock = kWarp * kColumnRows;  // 256: enough rows at a time to hide memory's latency, 8 KiB of shared memory

struct ColumnCut {
  unsigned across;       // blocks side by side
  unsigned chunks;       // blocks below one another, rows of partial sums
  size_t rows_of_chunk;
};

// About 1024 blocks: some for each multiprocessor of the largest devices. `lanes`: columns of one thread.
inline ColumnCut column_cut(size_t rows, size_t columns, unsigned lanes) noexcept {
  const size_t across = (columns + kWarp * lanes - 1) / (kWarp * lanes);
  const size_t wanted = across >= 1024 ? 1 : 1024 / across, most = (rows + 31) / 32;
  const size_t each = (rows + (wanted < most ? wanted : most) - 1) / (wanted < most ? wanted : most);
  return {static_cast<unsigned>(across), static_cast<unsigned>((rows + each - 1) / each), each};
}

// Columns at, at + 1, ... of a row: a vector where `aligned` (the row begins at 16 bytes and columns are a multiple of the lanes), else one by
// one; zeros behind the row's end.
template <class T>
CKPT_ON_DEVICE Packed<T> load_packed(const T *row, uint64_t at, uint64_t columns, bool aligned) {
  Packed<T> out;
  if (aligned) {
    uint4 raw = make_uint4(0, 0, 0, 0);
    if (at < columns) raw = *reinterpret_cast<const uint4 *>(row + at);
    memcpy(&out, &raw, sizeof out);
  } else {
#pragma unroll
    for (unsigned k = 0; k < kLanes<T>; ++k) out.at[k] = at + k < columns ? row[at + k] : rounded<T>(0.0f);
  }
  return out;
}
template <class T>
CKPT_ON_DEVICE void store_row(T *row, uint64_t at, uint64_t columns, bool aligned, const Floats<kLanes<T>> &values) {
  if (aligned) {
    if (at < columns) store_vector(row + at, values);
  } else {
#pragma unroll
    for (unsigned k = 0; k < kLanes<T>; ++k)
      if (at + k < columns) row[at + k] = rounded<T>(values.at[k]);
  }
}
template <class T>
CKPT_ON_DEVICE Floats<kLanes<T>> unpacked(const Packed<T> &packed) {
  Floats<kLanes<T>> out;
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) out.at[k] = as_float(packed.at[k]);
  return out;
}
template <class T>
CKPT_ON_DEVICE Floats<kLanes<T>> load_row(const T *row, uint64_t at, uint64_t columns, bool aligned) {
  return unpacked(load_packed(row, at, columns, aligned));
}

// The end of a first stage: the block's threads of one column add up, in order of threadIdx.y, to partial[at ... at + N - 1].
template <unsigned N>
CKPT_ON_DEVICE void store_columns(const Floats<N> &sums, uint64_t at, uint64_t columns, float *partial) {
  __shared__ float of_row[kColumnRows][kWarp * N + 1];  // + 1: rows begin in different banks
#pragma unroll
  for (unsigned k = 0; k < N; ++k) of_row[threadIdx.y][threadIdx.x + k * kWarp] = sums.at[k];
  __syncthreads();
  // All threads take part: N columns of each threadIdx.x are spread over the kColumnRows.
  for (unsigned k = threadIdx.y; k < N; k += kColumnRows) {
    float total = of_row[0][threadIdx.x + k * kWarp];
#pragma unroll
    for (unsigned row = 1; row < kColumnRows; ++row) total = sum(total, of_row[row][threadIdx.x + k * kWarp]);
    if (at + k < columns) partial[at + k] = total;
  }
}

// rows.cu. Second stage: grad[c] += partial[0][c] + partial[1][c] + ...; rows of partial sums are `stride` floats apart.
ckpt_status add_partial_sums(Context &context, const float *partial, size_t chunks, size_t stride, size_t columns, float *grad);

}  // namespace ckpt::ops::cuda
