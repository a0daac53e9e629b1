// Causal attention in tiles (Dao, Fu, Ermon, Rudra, Re: FlashAttention, 2022, arXiv 2205.14135): no more than one tile of weights
// exists at a time; forward keeps the logarithm of each row's sum of exponentials, from which backward makes the weights again.
// Tiles that are wholly masked are skipped. A task is a head.
#include <algorithm>

#include "ops/cpu/attention.h"

namespace ckpt::ops::cpu {
namespace {

using blas::Op;

// A tile of 32 KiB; columns are what the rescaling of a row's sum is paid for.
constexpr size_t kTileRows = 32, kTileColumns = 256;
constexpr size_t kTileFloats = kTileRows * kTileColumns;

struct Head {
  const AttentionShape &shape;
  const Dropout &dropout;
  const Kernels &kernels;

  CausalRows causal(size_t row, size_t rows, size_t column, size_t columns) const noexcept {
    return {rows, columns, static_cast<ptrdiff_t>(row) - static_cast<ptrdiff_t>(column) + 1};
  }
};

struct Forward : Head {
  const float *qkv;
  float *lse, *out;

  // Scratch: a tile, the head's keys, transposed.
  static size_t scratch_floats(const AttentionShape &s) noexcept { return kTileFloats + s.head_size() * s.sequence; }

  void head(size_t index, float *scratch) const noexcept {
    float *const keys = scratch + kTileFloats;
    transpose(qkv + shape.in_qkv(index) + shape.channels, shape.qkv_ld(), shape.sequence, shape.head_size(), keys);
    for (size_t first = 0; first < shape.sequence; first += kTileRows) rows(index, first, keys, scratch);
  }

  void rows(size_t index, size_t first, const float *keys, float *scratch) const noexcept {
    const size_t d = shape.head_size(), ld = shape.qkv_ld(), c = shape.channels, t = shape.sequence;
    const size_t m = std::min(kTileRows, t - first);
    const float *const q = qkv + shape.in_qkv(index) + first * ld, *const v = qkv + shape.in_qkv(index) + 2 * c;
    float *const to = out + shape.in_out(index) + first * c;
    float max[kTileRows], sum[kTileRows];
    for (size_t column = 0; column < first + m; column += kTileColumns) {
      const size_t n = std::min(kTileColumns, first + m - column);
      const CausalRows tile = causal(first, m, column, n);
      blas::product(Op::PLAIN, Op::PLAIN, m, n, d, shape.scale(), q, ld, keys + column, t, 0.0f, scratch, n);
      kernels.online_softmax(tile, scratch, n, max, sum, to, c, d, column == 0);
      if (dropout.active()) drop_weights(kernels, dropout, shape, index, first, column, tile, scratch, n, scratch, n);
      blas::product(Op::PLAIN, Op::PLAIN, m, d, n, 1.0f, scratch, n, v + column * ld, ld, column == 0 ? 0.0f : 1.0f, to, c);
    }
    for (size_t row = 0; row < m; ++row) {
      kernels.scale(1.0f / sum[row], d, to + row * c);
      lse[index * t + first + row] = max[row] + std::log(sum[row]);
    }
  }
};

struct Backward : Head {
  const float *qkv, *out, *lse, *out_grad;
  float *qkv_grad;

  // Scratch: weights, their gradient, dropped weights (three tiles); the head's keys and values, transposed; one number a row.
  static size_t scratch_floats(const AttentionShape &s) noexcept { return 3 * kTileFloats + (2 * s.head_size() + 1) * s.sequence; }

  void head(size_t index, float *scratch) const noexcept {
    const size_t t = shape.sequence, c = shape.channels;
    const size_t each = shape.head_size() * t;
    float *const keys = scratch + 3 * kTileFloats, *const values = keys + each, *const dots = values + each;
    transpose(qkv + shape.in_qkv(index) + c, shape.qkv_ld(), t, shape.head_size(), keys);
    transpose(qkv + shape.in_qkv(index) + 2 * c, shape.qkv_ld(), t, shape.head_size(), values);
    // sum over j of weight * weight's gradient = out . out_grad
    kernels.row_dots(out + shape.in_out(index), c, out_grad + shape.in_out(index), c, t, shape.head_size(), dots);
    for (size_t column = 0; column < t; column += kTileColumns)
      for (size_t row = column / kTileRows * kTileRows; row < t; row += kTileRows) tile(index, row, column, scratch, keys, values, dots);
  }

  void tile(size_t index, size_t row, size_t column, float *scratch, const float *keys, const float *values,
            const float *dots) const noexcept {
    const size_t d = shape.head_size(), ld = shape.qkv_ld(), c = shape.channels, t = shape.sequence;
    const size_t m = std::min(kTileRows, t - row), n = std::min({kTileColumns, t - column, row + m - column});
    const size_t q_at = shape.in_qkv(index) + row * ld, k_at = shape.in_qkv(index) + c + column * ld, v_at = k_at + c;
    const float *const grad = out_grad + shape.in_out(index) + row * c;
    const CausalRows shape_of_tile = causal(row, m, column, n);
    float *const weights = scratch, *const score_grad = scratch + kTileFloats;
    float *used = weights;
    blas::product(Op::PLAIN, Op::PLAIN, m, n, d, shape.scale(), qkv + q_at, ld, keys + column, t, 0.0f, weights, n);
    kernels.weights_from_lse(shape_of_tile, weights, n, lse + index * t + row);
    blas::product(Op::PLAIN, Op::PLAIN, m, n, d, 1.0f, grad, c, values + column, t, 0.0f, score_grad, n);
    if (dropout.active()) {
      used = scratch + 2 * kTileFloats;
      drop_weights(kernels, dropout, shape, index, row, column, shape_of_tile, weights, n, used, n);
      drop_weights(kernels, dropout, shape, index, row, column, shape_of_tile, score_grad, n, score_grad, n);
    }
    blas::product(Op::TRANSPOSED, Op::PLAIN, n, d, m, 1.0f, used, n, grad, c, 1.0f, qkv_grad + v_at, ld);
    kernels.score_gradient(shape_of_tile, weights, score_grad, n, dots + row);
    blas::product(Op::PLAIN, Op::PLAIN, m, d, n, shape.scale(), score_grad, n, qkv + k_at, ld, column == 0 ? 0.0f : 1.0f,
                  qkv_grad + q_at, ld);
    blas::product(Op::TRANSPOSED, Op::PLAIN, n, d, m, shape.scale(), score_grad, n, qkv + q_at, ld, 1.0f, qkv_grad + k_at, ld);
  }

  // Keys' and values' gradients are sums over tiles of which the first reaches only some rows: they start from zero.
  void clear(size_t index) const noexcept {
    for (size_t row = 0; row < shape.sequence; ++row) {
      float *const at = qkv_grad + shape.in_qkv(index) + row * shape.qkv_ld() + shape.channels;
      std::fill_n(at, shape.head_size(), 0.0f);
      std::fill_n(at + shape.channels, shape.head_size(), 0.0f);
    }
  }
};

}  // namespace

ckpt_status attention_tiled_forward(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                                    float dropout_probability, const ckpt_philox *philox, float *lse, void *out) {
  const AttentionShape shape{batch, sequence, heads, channels};
  const Dropout dropout(dropout_probability, philox);
  Work work(self);
  CKPT_OPS_TRY(work.reserve(0, Forward::scratch_floats(shape)));
  const Forward forward{{shape, dropout, work.kernels}, floats(qkv), lse, floats(out)};
  work.run(shape.head_count(), [&](size_t head, unsigned thread) { forward.head(head, work.of_thread(thread)); });
  return CKPT_OK;
}

ckpt_status attention_tiled_backward(void *self, const void *qkv, const void *out, const float *lse, const void *out_grad, size_t batch,
                                     size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                     const ckpt_philox *philox, void *qkv_grad) {
  const AttentionShape shape{batch, sequence, heads, channels};
  const Dropout dropout(dropout_probability, philox);
  Work work(self);
  CKPT_OPS_TRY(work.reserve(0, Backward::scratch_floats(shape)));
  const Backward backward{{shape, dropout, work.kernels}, floats(qkv), floats(out), lse, floats(out_grad), floats(qkv_grad)};
  work.run(shape.head_count(), [&](size_t head, unsigned thread) {
    backward.clear(head);
    backward.head(head, work.of_thread(thread));
  });
  return CKPT_OK;
}

}  // namespace ckpt::ops::cpu
