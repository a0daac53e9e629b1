// Causal attention that stores its weights. A task is a head: its keys are transposed once, and in backward the gradients
// of keys and values are sums over all queries. It goes through blocks of query rows; columns beyond a block's last row are never
// computed.
#include "ops/cpu/attention.h"

namespace ckpt::ops::cpu {
namespace {

using blas::Op;

constexpr size_t kBlockRows = 32;  // 64 compute an eighth more beyond the diagonal at 256 columns, and no product is faster for it

struct Forward {
  const AttentionShape &shape;
  const Dropout &dropout;
  const Kernels &kernels;
  const float *qkv;
  float *weights, *out;

  // Scratch: the head's keys, transposed; a block of weights after dropout.
  void head(size_t index, float *scratch) const noexcept {
    const size_t c = shape.channels, ld = shape.qkv_ld(), t = shape.sequence;
    transpose(qkv + shape.in_qkv(index) + c, ld, t, shape.head_size(), scratch);
    for (size_t first = 0; first < t; first += kBlockRows) rows(index, first, scratch, scratch + shape.head_size() * t);
  }

  void rows(size_t index, size_t first, const float *keys, float *dropped) const noexcept {
    const size_t d = shape.head_size(), ld = shape.qkv_ld(), c = shape.channels, t = shape.sequence;
    const size_t m = t - first < kBlockRows ? t - first : kBlockRows, n = first + m;
    const float *const q = qkv + shape.in_qkv(index) + first * ld, *const v = qkv + shape.in_qkv(index) + 2 * c;
    float *const w = weights + (index * t + first) * t;
    const ptrdiff_t first_valid = static_cast<ptrdiff_t>(first) + 1;
    blas::product(Op::PLAIN, Op::PLAIN, m, n, d, shape.scale(), q, ld, keys, t, 0.0f, w, t);
    kernels.causal_softmax({m, t, first_valid}, w, t);
    if (dropout.active()) drop_weights(kernels, dropout, shape, index, first, 0, {m, n, first_valid}, w, t, dropped, n);
    blas::product(Op::PLAIN, Op::PLAIN, m, d, n, 1.0f, dropout.active() ? dropped : w, dropout.active() ? n : t, v, ld, 0.0f,
                  out + shape.in_out(index) + first * c, c);
  }
};

struct Backward {
  const AttentionShape &shape;
  const Dropout &dropout;
  const Kernels &kernels;
  const float *qkv, *weights, *out_grad;
  float *qkv_grad;

  // The last block first: it reaches all keys, so its products write what the others add to.
  // Scratch: the head's values, transposed; a block of scores' gradients; a block of weights after dropout.
  void head(size_t index, float *scratch) const noexcept {
    transpose(qkv + shape.in_qkv(index) + 2 * shape.channels, shape.qkv_ld(), shape.sequence, shape.head_size(), scratch);
    for (size_t block = chunk_count(shape.sequence, kBlockRows); block-- > 0;)
      rows(index, block * kBlockRows, scratch, scratch + shape.head_size() * shape.sequence);
  }

  void rows(size_t index, size_t first, const float *values, float *scratch) const noexcept {
    const size_t d = shape.head_size(), ld = shape.qkv_ld(), c = shape.channels, t = shape.sequence;
    const size_t m = t - first < kBlockRows ? t - first : kBlockRows, n = first + m;
    const float *const q = qkv + shape.in_qkv(index), *const k = q + c;
    float *const q_grad = qkv_grad + shape.in_qkv(index), *const k_grad = q_grad + c, *const v_grad = k_grad + c;
    const float *const w = weights + (index * t + first) * t;
    const float *const grad = out_grad + shape.in_out(index) + first * c;
    const float add = n == t ? 0.0f : 1.0f;
    const CausalRows causal{m, n, static_cast<ptrdiff_t>(first) + 1};
    float *const score_grad = scratch, *const dropped = scratch + kBlockRows * t;
    const float *used = w;  // the weights that met the values
    size_t used_ld = t;
    blas::product(Op::PLAIN, Op::PLAIN, m, n, d, 1.0f, grad, c, values, t, 0.0f, score_grad, n);
    if (dropout.active()) {
      drop_weights(kernels, dropout, shape, index, first, 0, causal, score_grad, n, score_grad, n);
      drop_weights(kernels, dropout, shape, index, first, 0, causal, w, t, dropped, n);
      used = dropped;
      used_ld = n;
    }
    blas::product(Op::TRANSPOSED, Op::PLAIN, n, d, m, 1.0f, used, used_ld, grad, c, add, v_grad, ld);
    kernels.causal_softmax_backward(causal, w, t, score_grad, n);
    blas::product(Op::PLAIN, Op::PLAIN, m, d, n, shape.scale(), score_grad, n, k, ld, 0.0f, q_grad + first * ld, ld);
    blas::product(Op::TRANSPOSED, Op::PLAIN, n, d, m, shape.scale(), score_grad, n, q + first * ld, ld, add, k_grad, ld);
  }
};

}  // namespace

ckpt_status attention_forward(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                              float dropout_probability, const ckpt_philox *philox, void *weights, void *out) {
  const AttentionShape shape{batch, sequence, heads, channels};
  const Dropout dropout(dropout_probability, philox);
  Work work(self);
  CKPT_OPS_TRY(work.reserve(0, shape.head_size() * sequence + (dropout.active() ? kBlockRows * sequence : 0)));
  const Forward forward{shape, dropout, work.kernels, floats(qkv), floats(weights), floats(out)};
  work.run(shape.head_count(), [&](size_t head, unsigned thread) { forward.head(head, work.of_thread(thread)); });
  return CKPT_OK;
}

ckpt_status attention_backward(void *self, const void *qkv, const void *weights, const void *out_grad, size_t batch, size_t sequence,
                               size_t heads, size_t channels, float dropout_probability, const ckpt_philox *philox, void *qkv_grad) {
  const AttentionShape shape{batch, sequence, heads, channels};
  const Dropout dropout(dropout_probability, philox);
  Work work(self);
  CKPT_OPS_TRY(work.reserve(0, shape.head_size() * sequence + kBlockRows * sequence * (dropout.active() ? 2 : 1)));
  const Backward backward{shape, dropout, work.kernels, floats(qkv), floats(weights), floats(out_grad), floats(qkv_grad)};
  work.run(shape.head_count(), [&](size_t head, unsigned thread) { backward.head(head, work.of_thread(thread)); });
  return CKPT_OK;
}

}  // namespace ckpt::ops::cpu
