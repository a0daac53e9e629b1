// Causal attention that stores its weights. A task is a block of query rows of one head (forward) or a whole head (backward, where
// the gradients of keys and values are sums over all queries); columns beyond a block's last row are never computed.
#include "ops/cpu/attention.h"

using namespace ckpt::ops;
using blas::Op;

namespace {

constexpr size_t kBlockRows = 64;

struct Backward {
  const AttentionShape &shape;
  const Dropout &dropout;
  const Kernels &kernels;
  const float *qkv, *weights, *out_grad;
  float *qkv_grad;

  // The last block first: it reaches all keys, so its products write what the others add to.
  void head(size_t index, float *scratch) const noexcept {
    for (size_t block = chunk_count(shape.sequence, kBlockRows); block-- > 0;) rows(index, block * kBlockRows, scratch);
  }

  void rows(size_t index, size_t first, float *scratch) const noexcept {
    const size_t d = shape.head_size(), ld = shape.qkv_ld(), c = shape.channels, t = shape.sequence;
    const size_t m = t - first < kBlockRows ? t - first : kBlockRows, n = first + m;
    const float *const q = qkv + shape.in_qkv(index), *const k = q + c, *const v = k + c;
    float *const q_grad = qkv_grad + shape.in_qkv(index), *const k_grad = q_grad + c, *const v_grad = k_grad + c;
    const float *const w = weights + (index * t + first) * t;
    const float *const grad = out_grad + shape.in_out(index) + first * c;
    const float add = n == t ? 0.0f : 1.0f;
    const CausalRows causal{m, n, static_cast<ptrdiff_t>(first) + 1};
    float *const score_grad = scratch, *const dropped = scratch + kBlockRows * t;
    const float *used = w;  // the weights that met the values
    size_t used_ld = t;
    blas::product(Op::PLAIN, Op::TRANSPOSED, m, n, d, 1.0f, grad, c, v, ld, 0.0f, score_grad, n);
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

extern "C" {

ckpt_status ckpt_ops_attention_forward(ckpt_ops *ops, const float *qkv, size_t batch, size_t sequence, size_t heads,
                                       size_t channels, float dropout_probability, const ckpt_philox *philox, float *weights,
                                       float *out) {
  const AttentionShape shape{batch, sequence, heads, channels};
  Check check("ckpt_ops_attention_forward");
  check.pointers({{"ops", ops}, {"qkv", qkv}, {"weights", weights}, {"out", out}});
  CKPT_OPS_TRY(check_attention(check, shape, dropout_probability, philox));
  const Dropout dropout(dropout_probability, philox);
  CKPT_OPS_TRY(dropout.reaches(shape.head_count() * sequence * sequence));
  Turn turn(ops);
  CKPT_OPS_TRY(turn.reserve(0, dropout.active() ? kBlockRows * sequence : 0));
  const size_t blocks = chunk_count(sequence, kBlockRows), d = shape.head_size(), ld = shape.qkv_ld();
  turn.run(shape.head_count() * blocks, [&](size_t task, unsigned thread) {
    const size_t head = task / blocks, first = task % blocks * kBlockRows;
    const size_t m = sequence - first < kBlockRows ? sequence - first : kBlockRows, n = first + m;
    const float *const q = qkv + shape.in_qkv(head) + first * ld, *const k = qkv + shape.in_qkv(head) + channels;
    float *const w = weights + (head * sequence + first) * sequence;
    const CausalRows causal{m, n, static_cast<ptrdiff_t>(first) + 1};
    blas::product(Op::PLAIN, Op::TRANSPOSED, m, n, d, shape.scale(), q, ld, k, ld, 0.0f, w, sequence);
    turn.kernels.causal_softmax({m, sequence, causal.first_valid}, w, sequence);
    const float *used = w;
    size_t used_ld = sequence;
    if (dropout.active()) {
      used = turn.of_thread(thread);
      used_ld = n;
      drop_weights(turn.kernels, dropout, shape, head, first, 0, causal, w, sequence, turn.of_thread(thread), n);
    }
    blas::product(Op::PLAIN, Op::PLAIN, m, d, n, 1.0f, used, used_ld, k + channels, ld, 0.0f,
                  out + shape.in_out(head) + first * channels, channels);
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_attention_backward(ckpt_ops *ops, const float *qkv, const float *weights, const float *out_grad,
                                        size_t batch, size_t sequence, size_t heads, size_t channels,
                                        float dropout_probability, const ckpt_philox *philox, float *qkv_grad) {
  const AttentionShape shape{batch, sequence, heads, channels};
  Check check("ckpt_ops_attention_backward");
  check.pointers({{"ops", ops}, {"qkv", qkv}, {"weights", weights}, {"out_grad", out_grad}, {"qkv_grad", qkv_grad}});
  CKPT_OPS_TRY(check_attention(check, shape, dropout_probability, philox));
  const Dropout dropout(dropout_probability, philox);
  CKPT_OPS_TRY(dropout.reaches(shape.head_count() * sequence * sequence));
  Turn turn(ops);
  CKPT_OPS_TRY(turn.reserve(0, kBlockRows * sequence * (dropout.active() ? 2 : 1)));
  const Backward backward{shape, dropout, turn.kernels, qkv, weights, out_grad, qkv_grad};
  turn.run(shape.head_count(), [&](size_t head, unsigned thread) { backward.head(head, turn.of_thread(thread)); });
  return CKPT_OK;
}

}  // extern "C"
