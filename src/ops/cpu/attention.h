// What both attentions share: where one head's rows are in the packed arrays.
#pragma once

#include <cmath>

#include "ops/cpu/dropout.h"
#include "ops/cpu/functions.h"

namespace ckpt::ops::cpu {

struct AttentionShape {
  size_t batch, sequence, heads, channels;
  size_t head_size() const noexcept { return channels / heads; }
  size_t qkv_ld() const noexcept { return 3 * channels; }
  float scale() const noexcept { return 1.0f / std::sqrt(static_cast<float>(head_size())); }
  size_t head_count() const noexcept { return batch * heads; }

  // Head `index` = b * heads + h: its queries in qkv (keys and values follow at + channels, + 2 channels), its rows in out.
  size_t in_qkv(size_t index) const noexcept { return index / heads * sequence * qkv_ld() + index % heads * head_size(); }
  size_t in_out(size_t index) const noexcept { return index / heads * sequence * channels + index % heads * head_size(); }
};

// One head's keys (or values) with the head's elements as rows: to [head_size, rows]. A product with plain operands takes the BLAS's
// way for small sizes, without packing: a quarter faster, and made once for all blocks of queries.
inline void transpose(const float *from, size_t ld, size_t rows, size_t columns, float *to) noexcept {
  constexpr size_t kBlock = 16;
  for (size_t row = 0; row < rows; row += kBlock)
    for (size_t column = 0; column < columns; ++column)
      for (size_t k = row; k < row + kBlock && k < rows; ++k) to[column * rows + k] = from[k * ld + column];
}

// Attention weights of one head after dropout: rows first_row .. + shape.rows, columns first_column .. + shape.columns.
// `to` may be `weights`.
inline void drop_weights(const Kernels &kernels, const Dropout &dropout, const AttentionShape &s, size_t head, size_t first_row,
                         size_t first_column, CausalRows shape, const float *weights, size_t weights_ld, float *to, size_t to_ld) noexcept {
  for (size_t row = 0; row < shape.rows; ++row) {
    const uint64_t first = (static_cast<uint64_t>(head) * s.sequence + first_row + row) * s.sequence + first_column;
    dropout.pieces(first, shape.columns, [&](size_t offset, size_t n, Mask mask) {
      kernels.mask_gradient(weights + row * weights_ld + offset, mask, n, to + row * to_ld + offset, false);
    });
  }
}

}  // namespace ckpt::ops::cpu
