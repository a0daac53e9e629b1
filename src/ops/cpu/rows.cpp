// Layer normalisation, GELU, cross-entropy, embedding: work over rows. Sums over rows are taken per chunk of rows, whose size the
// shape fixes, then over the chunks in order.
#include <cmath>

#include "ops/cpu/rows.h"
#include "ops/handle.h"

using namespace ckpt::ops;

namespace {

constexpr size_t kStrip = 32;  // columns of one task where a task goes over all rows: two cache lines

// grad += the sum of `chunks` rows of partial sums, row by row.
void add_partial_sums(const Turn &turn, const float *partial, size_t chunks, size_t stride, size_t columns, float *grad) {
  turn.chunks(columns, 16 * kStrip, [&](size_t first, size_t n, size_t, unsigned) {
    for (size_t chunk = 0; chunk < chunks; ++chunk)
      turn.kernels.add(grad + first, partial + chunk * stride + first, n, grad + first);
  });
}

size_t counted_rows(const int32_t *targets, size_t rows, int32_t ignore_index) {
  size_t counted = 0;
  for (size_t row = 0; row < rows; ++row) counted += targets[row] != ignore_index;
  return counted;
}

}  // namespace

namespace ckpt::ops {

ckpt_status check_indices(const char *function, const char *name, const int32_t *indices, size_t count, size_t bound,
                          const int32_t *ignored) {
  for (size_t k = 0; k < count; ++k) {
    const int32_t index = indices[k];
    if ((index < 0 || static_cast<size_t>(index) >= bound) && (ignored == nullptr || index != *ignored))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s[%zu] is %d, expected 0 <= %s < %zu", function, name, k, index, name, bound);
  }
  return CKPT_OK;
}

double cross_entropy_sum(ckpt_ops *ops, const float *logits, const int32_t *targets, size_t rows, size_t vocabulary,
                         int32_t ignore_index, float *lse, double sum) noexcept {
  const Turn turn(ops);
  turn.chunks(rows, rows_per_chunk(vocabulary), [&](size_t first, size_t n, size_t, unsigned) {
    for (size_t row = first; row < first + n; ++row) {
      float max = 0.0f, exponentials = 0.0f;
      turn.kernels.row_max_and_sum(logits + row * vocabulary, vocabulary, &max, &exponentials);
      lse[row] = max + std::log(exponentials);
    }
  });
  for (size_t row = 0; row < rows; ++row)
    if (targets[row] != ignore_index)
      sum += static_cast<double>(lse[row]) - static_cast<double>(logits[row * vocabulary + static_cast<size_t>(targets[row])]);
  return sum;
}

float mean_loss(const int32_t *targets, size_t rows, int32_t ignore_index, double sum) noexcept {
  const size_t counted = counted_rows(targets, rows, ignore_index);
  return counted == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(counted));
}

float row_loss_grad(const int32_t *targets, size_t rows, int32_t ignore_index, float loss_grad) noexcept {
  const size_t counted = counted_rows(targets, rows, ignore_index);
  return counted == 0 ? 0.0f : loss_grad / static_cast<float>(counted);
}

void cross_entropy_gradient(ckpt_ops *ops, const float *logits, const int32_t *targets, const float *lse, size_t rows,
                            size_t vocabulary, int32_t ignore_index, float row_grad, float *logits_grad) noexcept {
  const Turn turn(ops);
  turn.chunks(rows, rows_per_chunk(vocabulary), [&](size_t first, size_t n, size_t, unsigned) {
    for (size_t row = first; row < first + n; ++row) {
      float *const grad = logits_grad + row * vocabulary;
      if (targets[row] == ignore_index) {
        std::memset(grad, 0, vocabulary * sizeof(float));
        continue;
      }
      turn.kernels.cross_entropy_gradient(logits + row * vocabulary, lse[row], vocabulary, row_grad, grad);
      grad[targets[row]] -= row_grad;
    }
  });
}

}  // namespace ckpt::ops

extern "C" {

ckpt_status ckpt_ops_embedding_forward(ckpt_ops *ops, const int32_t *tokens, const float *token_table,
                                       const float *position_table, size_t batch, size_t sequence, size_t channels,
                                       size_t vocabulary, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_embedding_forward")
                   .pointers({{"ops", ops}, {"tokens", tokens}, {"token_table", token_table}, {"out", out}})
                   .sizes({{"batch", batch}, {"sequence", sequence}, {"channels", channels}})
                   .sizes({{"vocabulary", vocabulary}, {"channels", channels}}).status());
  CKPT_OPS_TRY(check_indices("ckpt_ops_embedding_forward", "tokens", tokens, batch * sequence, vocabulary, nullptr));
  const Turn turn(ops);
  turn.chunks(batch * sequence, rows_per_chunk(channels), [&](size_t first, size_t rows, size_t, unsigned) {
    for (size_t row = first; row < first + rows; ++row) {
      const float *const token = token_table + static_cast<size_t>(tokens[row]) * channels;
      const float *const position = position_table == nullptr ? nullptr : position_table + row % sequence * channels;
      turn.kernels.bias_mask_residual(token, nullptr, position, Mask{nullptr, 0, 1.0f}, channels, out + row * channels);
    }
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_embedding_backward(ckpt_ops *ops, const int32_t *tokens, const float *out_grad, size_t batch,
                                        size_t sequence, size_t channels, size_t vocabulary, float *token_grad,
                                        float *position_grad) {
  CKPT_OPS_TRY(Check("ckpt_ops_embedding_backward").pointers({{"ops", ops}, {"tokens", tokens}, {"out_grad", out_grad}})
                   .sizes({{"batch", batch}, {"sequence", sequence}, {"channels", channels}})
                   .sizes({{"vocabulary", vocabulary}, {"channels", channels}}).status());
  CKPT_OPS_TRY(check_indices("ckpt_ops_embedding_backward", "tokens", tokens, batch * sequence, vocabulary, nullptr));
  const Turn turn(ops);
  // A strip of columns is one task's, over all rows in order: rows that share a token need no lock and have one order.
  turn.chunks(channels, kStrip, [&](size_t column, size_t n, size_t, unsigned) {
    for (size_t row = 0; row < batch * sequence; ++row) {
      const float *const grad = out_grad + row * channels + column;
      float *const token = token_grad + static_cast<size_t>(tokens[row]) * channels + column;
      float *const position = position_grad + row % sequence * channels + column;
      if (token_grad != nullptr) turn.kernels.add(token, grad, n, token);
      if (position_grad != nullptr) turn.kernels.add(position, grad, n, position);
    }
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_layernorm_forward(ckpt_ops *ops, const float *in, const float *weight, const float *bias, size_t rows,
                                       size_t channels, float epsilon, float *out, float *mean, float *rstd) {
  CKPT_OPS_TRY(Check("ckpt_ops_layernorm_forward")
                   .pointers({{"ops", ops}, {"in", in}, {"weight", weight}, {"bias", bias}, {"out", out}, {"mean", mean},
                              {"rstd", rstd}})
                   .sizes({{"rows", rows}, {"channels", channels}}).status());
  if (!(epsilon > 0.0f && std::isfinite(epsilon)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_layernorm_forward: epsilon is %g, expected a number above 0",
                static_cast<double>(epsilon));
  const Turn turn(ops);
  turn.chunks(rows, rows_per_chunk(channels), [&](size_t first, size_t n, size_t, unsigned) {
    turn.kernels.layernorm_forward(in + first * channels, weight, bias, n, channels, epsilon, out + first * channels,
                                   mean + first, rstd + first);
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_layernorm_backward(ckpt_ops *ops, const float *in, const float *mean, const float *rstd,
                                        const float *weight, const float *out_grad, const float *residual_grad, size_t rows,
                                        size_t channels, float *in_grad, uint32_t accumulate, float *weight_grad,
                                        float *bias_grad) {
  CKPT_OPS_TRY(Check("ckpt_ops_layernorm_backward")
                   .pointers({{"ops", ops}, {"in", in}, {"mean", mean}, {"rstd", rstd}, {"weight", weight},
                              {"out_grad", out_grad}, {"in_grad", in_grad}})
                   .sizes({{"rows", rows}, {"channels", channels}}).status());
  Turn turn(ops);
  const size_t chunk_rows = rows_per_chunk(channels), chunks = chunk_count(rows, chunk_rows);
  CKPT_OPS_TRY(turn.reserve(chunks * 2 * channels, 0));
  float *const sums = turn.shared();
  turn.chunks(rows, chunk_rows, [&](size_t first, size_t n, size_t chunk, unsigned) {
    const size_t at = first * channels;
    float *const weight_sums = sums + chunk * 2 * channels;
    turn.kernels.layernorm_backward(in + at, mean + first, rstd + first, weight, out_grad + at,
                                    residual_grad == nullptr ? nullptr : residual_grad + at, n, channels, in_grad + at,
                                    accumulate != 0, weight_sums, weight_sums + channels);
  });
  if (weight_grad != nullptr) add_partial_sums(turn, sums, chunks, 2 * channels, channels, weight_grad);
  if (bias_grad != nullptr) add_partial_sums(turn, sums + channels, chunks, 2 * channels, channels, bias_grad);
  return CKPT_OK;
}

ckpt_status ckpt_ops_gelu_forward(ckpt_ops *ops, const float *in, const float *bias, size_t rows, size_t columns, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_gelu_forward").pointers({{"ops", ops}, {"in", in}, {"out", out}})
                   .sizes({{"rows", rows}, {"columns", columns}}).status());
  const Turn turn(ops);
  if (bias == nullptr) {  // rows do not matter
    turn.chunks(rows * columns, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
      turn.kernels.gelu_forward(in + first, nullptr, 1, n, out + first);
    });
    return CKPT_OK;
  }
  turn.chunks(rows, rows_per_chunk(columns), [&](size_t first, size_t n, size_t, unsigned) {
    turn.kernels.gelu_forward(in + first * columns, bias, n, columns, out + first * columns);
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_gelu_backward(ckpt_ops *ops, const float *in, const float *bias, const float *out_grad, size_t rows,
                                   size_t columns, float *in_grad, uint32_t accumulate, float *bias_grad) {
  CKPT_OPS_TRY(Check("ckpt_ops_gelu_backward")
                   .pointers({{"ops", ops}, {"in", in}, {"out_grad", out_grad}, {"in_grad", in_grad}})
                   .sizes({{"rows", rows}, {"columns", columns}}).status());
  Turn turn(ops);
  if (bias == nullptr && bias_grad == nullptr) {
    turn.chunks(rows * columns, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
      turn.kernels.gelu_backward(in + first, nullptr, out_grad + first, 1, n, in_grad + first, accumulate != 0, nullptr);
    });
    return CKPT_OK;
  }
  const size_t chunk_rows = rows_per_chunk(columns), chunks = chunk_count(rows, chunk_rows);
  CKPT_OPS_TRY(turn.reserve(bias_grad == nullptr ? 0 : chunks * columns, 0));
  turn.chunks(rows, chunk_rows, [&](size_t first, size_t n, size_t chunk, unsigned) {
    const size_t at = first * columns;
    turn.kernels.gelu_backward(in + at, bias, out_grad + at, n, columns, in_grad + at, accumulate != 0,
                               bias_grad == nullptr ? nullptr : turn.shared() + chunk * columns);
  });
  if (bias_grad != nullptr) add_partial_sums(turn, turn.shared(), chunks, columns, columns, bias_grad);
  return CKPT_OK;
}

ckpt_status ckpt_ops_cross_entropy_forward(ckpt_ops *ops, const float *logits, const int32_t *targets, size_t rows,
                                           size_t vocabulary, int32_t ignore_index, float *lse, float *out_loss) {
  constexpr const char *kName = "ckpt_ops_cross_entropy_forward";
  CKPT_OPS_TRY(Check(kName)
                   .pointers({{"ops", ops}, {"logits", logits}, {"targets", targets}, {"lse", lse}, {"out_loss", out_loss}})
                   .sizes({{"rows", rows}, {"vocabulary", vocabulary}}).status());
  CKPT_OPS_TRY(check_indices(kName, "targets", targets, rows, vocabulary, &ignore_index));
  *out_loss = mean_loss(targets, rows, ignore_index, cross_entropy_sum(ops, logits, targets, rows, vocabulary, ignore_index, lse, 0.0));
  return CKPT_OK;
}

ckpt_status ckpt_ops_cross_entropy_backward(ckpt_ops *ops, const float *logits, const int32_t *targets, const float *lse,
                                            size_t rows, size_t vocabulary, int32_t ignore_index, float loss_grad,
                                            float *logits_grad) {
  constexpr const char *kName = "ckpt_ops_cross_entropy_backward";
  CKPT_OPS_TRY(Check(kName)
                   .pointers({{"ops", ops}, {"logits", logits}, {"targets", targets}, {"lse", lse},
                              {"logits_grad", logits_grad}})
                   .sizes({{"rows", rows}, {"vocabulary", vocabulary}}).status());
  CKPT_OPS_TRY(check_indices(kName, "targets", targets, rows, vocabulary, &ignore_index));
  cross_entropy_gradient(ops, logits, targets, lse, rows, vocabulary, ignore_index,
                         row_loss_grad(targets, rows, ignore_index, loss_grad), logits_grad);
  return CKPT_OK;
}

}  // extern "C"
