// Layer normalisation, GELU, cross-entropy, embedding: work over rows. Sums over rows are taken per chunk of rows, whose size the
// shape fixes, then over the chunks in order.
#include <cmath>
#include <cstring>

#include "ops/cpu/functions.h"

namespace ckpt::ops::cpu {
namespace {

constexpr size_t kStrip = 32;  // columns of one task where a task goes over all rows: two cache lines

// grad += the sum of `chunks` rows of partial sums, row by row.
void add_partial_sums(const Work &work, const float *partial, size_t chunks, size_t stride, size_t columns, float *grad) {
  work.chunks(columns, 16 * kStrip, [&](size_t first, size_t n, size_t, unsigned) {
    for (size_t chunk = 0; chunk < chunks; ++chunk)
      work.kernels.add(grad + first, partial + chunk * stride + first, n, grad + first);
  });
}

size_t counted_rows(const int32_t *targets, size_t rows, int32_t ignore_index) {
  size_t counted = 0;
  for (size_t row = 0; row < rows; ++row) counted += targets[row] != ignore_index;
  return counted;
}

}  // namespace

ckpt_status embedding_forward(void *self, const int32_t *tokens, const void *token_table, const void *position_table, size_t batch,
                              size_t sequence, size_t channels, size_t, void *out) {
  const Work work(self);
  const float *const tables = floats(token_table), *const positions = floats(position_table);
  work.chunks(batch * sequence, rows_per_chunk(channels), [&](size_t first, size_t rows, size_t, unsigned) {
    for (size_t row = first; row < first + rows; ++row) {
      const float *const token = tables + static_cast<size_t>(tokens[row]) * channels;
      const float *const position = positions == nullptr ? nullptr : positions + row % sequence * channels;
      work.kernels.bias_mask_residual(token, nullptr, position, Mask{nullptr, 0, 1.0f}, channels, floats(out) + row * channels);
    }
  });
  return CKPT_OK;
}

ckpt_status embedding_backward(void *self, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence, size_t channels,
                               size_t, float *token_grad, float *position_grad) {
  const Work work(self);
  // A strip of columns is one task's, over all rows in order: rows that share a token need no lock and have one order.
  work.chunks(channels, kStrip, [&](size_t column, size_t n, size_t, unsigned) {
    for (size_t row = 0; row < batch * sequence; ++row) {
      const float *const grad = floats(out_grad) + row * channels + column;
      if (token_grad != nullptr) {
        float *const token = token_grad + static_cast<size_t>(tokens[row]) * channels + column;
        work.kernels.add(token, grad, n, token);
      }
      if (position_grad != nullptr) {
        float *const position = position_grad + row % sequence * channels + column;
        work.kernels.add(position, grad, n, position);
      }
    }
  });
  return CKPT_OK;
}

ckpt_status layernorm_forward(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                              float epsilon, void *out, float *mean, float *rstd) {
  const Work work(self);
  work.chunks(rows, rows_per_chunk(channels), [&](size_t first, size_t n, size_t, unsigned) {
    work.kernels.layernorm_forward(floats(in) + first * channels, floats(weight), floats(bias), n, channels, epsilon,
                                   floats(out) + first * channels, mean + first, rstd + first);
  });
  return CKPT_OK;
}

ckpt_status layernorm_backward(void *self, const void *in, const float *mean, const float *rstd, const void *weight,
                               const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                               uint32_t accumulate, float *weight_grad, float *bias_grad) {
  Work work(self);
  const size_t chunk_rows = rows_per_chunk(channels), chunks = chunk_count(rows, chunk_rows);
  CKPT_OPS_TRY(work.reserve(chunks * 2 * channels, 0));
  float *const sums = work.shared();
  work.chunks(rows, chunk_rows, [&](size_t first, size_t n, size_t chunk, unsigned) {
    const size_t at = first * channels;
    float *const weight_sums = sums + chunk * 2 * channels;
    work.kernels.layernorm_backward(floats(in) + at, mean + first, rstd + first, floats(weight), floats(out_grad) + at,
                                    residual_grad == nullptr ? nullptr : floats(residual_grad) + at, n, channels,
                                    floats(in_grad) + at, accumulate != 0, weight_sums, weight_sums + channels);
  });
  if (weight_grad != nullptr) add_partial_sums(work, sums, chunks, 2 * channels, channels, weight_grad);
  if (bias_grad != nullptr) add_partial_sums(work, sums + channels, chunks, 2 * channels, channels, bias_grad);
  return CKPT_OK;
}

ckpt_status gelu_forward(void *self, const void *in, const void *bias, size_t rows, size_t columns, void *out) {
  const Work work(self);
  if (bias == nullptr) {  // rows do not matter
    work.chunks(rows * columns, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
      work.kernels.gelu_forward(floats(in) + first, nullptr, 1, n, floats(out) + first);
    });
    return CKPT_OK;
  }
  work.chunks(rows, rows_per_chunk(columns), [&](size_t first, size_t n, size_t, unsigned) {
    work.kernels.gelu_forward(floats(in) + first * columns, floats(bias), n, columns, floats(out) + first * columns);
  });
  return CKPT_OK;
}

ckpt_status gelu_backward(void *self, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns,
                          void *in_grad, uint32_t accumulate, float *bias_grad) {
  Work work(self);
  if (bias == nullptr && bias_grad == nullptr) {
    work.chunks(rows * columns, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
      work.kernels.gelu_backward(floats(in) + first, nullptr, floats(out_grad) + first, 1, n, floats(in_grad) + first, accumulate != 0,
                                 nullptr);
    });
    return CKPT_OK;
  }
  const size_t chunk_rows = rows_per_chunk(columns), chunks = chunk_count(rows, chunk_rows);
  CKPT_OPS_TRY(work.reserve(bias_grad == nullptr ? 0 : chunks * columns, 0));
  work.chunks(rows, chunk_rows, [&](size_t first, size_t n, size_t chunk, unsigned) {
    const size_t at = first * columns;
    work.kernels.gelu_backward(floats(in) + at, floats(bias), floats(out_grad) + at, n, columns, floats(in_grad) + at, accumulate != 0,
                               bias_grad == nullptr ? nullptr : work.shared() + chunk * columns);
  });
  if (bias_grad != nullptr) add_partial_sums(work, work.shared(), chunks, columns, columns, bias_grad);
  return CKPT_OK;
}

// Cross-entropy in pieces of rows: the sum of the rows' losses goes on, in order, so pieces do not change its bits.

ckpt_status loss_begin(void *self, const int32_t *, size_t, size_t, int32_t) {
  Context &context = *static_cast<Context *>(self);
  context.loss_sum = 0.0;
  context.loss_rows = 0;
  return CKPT_OK;
}

ckpt_status loss_add(void *self, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index,
                     float *lse) {
  const Work work(self);
  work.chunks(rows, rows_per_chunk(vocabulary), [&](size_t first, size_t n, size_t, unsigned) {
    for (size_t row = first; row < first + n; ++row) {
      float max = 0.0f, exponentials = 0.0f;
      work.kernels.row_max_and_sum(floats(logits) + row * vocabulary, vocabulary, &max, &exponentials);
      lse[row] = max + std::log(exponentials);
    }
  });
  double sum = work.context().loss_sum;
  for (size_t row = 0; row < rows; ++row)
    if (targets[row] != ignore_index)
      sum += static_cast<double>(lse[row]) - static_cast<double>(floats(logits)[row * vocabulary + static_cast<size_t>(targets[row])]);
  work.context().loss_sum = sum;
  work.context().loss_rows += counted_rows(targets, rows, ignore_index);
  return CKPT_OK;
}

ckpt_status loss_end(void *self, float *out_loss) {
  const Context &context = *static_cast<const Context *>(self);
  *out_loss = context.loss_rows == 0 ? 0.0f : static_cast<float>(context.loss_sum / static_cast<double>(context.loss_rows));
  return CKPT_OK;
}

ckpt_status loss_scale(void *self, const int32_t *targets, size_t rows, size_t, int32_t ignore_index, const float *device_loss_grad,
                       float host_loss_grad) {
  const size_t counted = counted_rows(targets, rows, ignore_index);
  const float loss_grad = device_loss_grad == nullptr ? host_loss_grad : *device_loss_grad;
  static_cast<Context *>(self)->loss_scale = counted == 0 ? 0.0f : loss_grad / static_cast<float>(counted);
  return CKPT_OK;
}

ckpt_status loss_gradient(void *self, const void *logits, const int32_t *targets, const float *lse, size_t rows, size_t vocabulary,
                          int32_t ignore_index, void *logits_grad) {
  const Work work(self);
  const float scale = work.context().loss_scale;
  work.chunks(rows, rows_per_chunk(vocabulary), [&](size_t first, size_t n, size_t, unsigned) {
    for (size_t row = first; row < first + n; ++row) {
      float *const grad = floats(logits_grad) + row * vocabulary;
      if (targets[row] == ignore_index) {
        std::memset(grad, 0, vocabulary * sizeof(float));
        continue;
      }
      work.kernels.cross_entropy_gradient(floats(logits) + row * vocabulary, lse[row], vocabulary, scale, grad);
      grad[targets[row]] -= scale;
    }
  });
  return CKPT_OK;
}

}  // namespace ckpt::ops::cpu
