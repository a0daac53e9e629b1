// Layer normalisation and the softmax family. See wide.h.
#pragma once

#include "ops/cpu/wide.h"

namespace ckpt::ops {
namespace {

void layernorm_forward(const float *in, const float *weight, const float *bias, size_t rows, size_t channels, float epsilon,
                       float *out, float *mean, float *rstd) {
  const float share = 1.0f / static_cast<float>(channels);
  for (size_t row = 0; row < rows; ++row, in += channels, out += channels) {
    F sum = {};
    each(channels, [&](size_t k, size_t n) { sum += load(in + k, n); });
    const float m = total(sum) * share;
    F squares = {};
    each(channels, [&](size_t k, size_t n) {
      const F d = load(in + k, n, m) - m;
      squares += d * d;
    });
    const float r = 1.0f / __builtin_sqrtf(total(squares) * share + epsilon);
    each(channels, [=](size_t k, size_t n) {
      store(out + k, (load(in + k, n) - m) * r * load(weight + k, n) + load(bias + k, n), n);
    });
    mean[row] = m;
    rstd[row] = r;
  }
}

// With g = out_grad * weight and h the normalised row: in_grad = rstd (g - mean(g) - h mean(g h)).
void layernorm_backward(const float *in, const float *mean, const float *rstd, const float *weight, const float *out_grad,
                        const float *residual_grad, size_t rows, size_t channels, float *in_grad, bool accumulate,
                        float *weight_sums, float *bias_sums) {
  const float share = 1.0f / static_cast<float>(channels);
  each(channels, [=](size_t k, size_t n) {
    store(weight_sums + k, F{}, n);
    store(bias_sums + k, F{}, n);
  });
  for (size_t row = 0; row < rows; ++row, in += channels, out_grad += channels, in_grad += channels) {
    const float m = mean[row], r = rstd[row];
    F sum_g = {}, sum_gh = {};
    each(channels, [&](size_t k, size_t n) {
      const F grad = load(out_grad + k, n);
      const F h = (load(in + k, n, m) - m) * r;
      const F g = grad * load(weight + k, n);
      sum_g += g;
      sum_gh += g * h;
      store(weight_sums + k, load(weight_sums + k, n) + grad * h, n);
      store(bias_sums + k, load(bias_sums + k, n) + grad, n);
    });
    const float mean_g = total(sum_g) * share, mean_gh = total(sum_gh) * share;
    each(channels, [=](size_t k, size_t n) {
      const F h = (load(in + k, n) - m) * r;
      F grad = (load(out_grad + k, n) * load(weight + k, n) - mean_g - h * mean_gh) * r;
      if (residual_grad != nullptr) grad = load(residual_grad + k, n) + grad;
      if (accumulate) grad = load(in_grad + k, n) + grad;
      store(in_grad + k, grad, n);
    });
    if (residual_grad != nullptr) residual_grad += channels;
  }
}

constexpr float kLowest = -__FLT_MAX__;

// Zero in the lanes that are not there.
CKPT_WIDE F there(F value, size_t count) {
  if (count == kLanes) return value;
  U lane;
  for (size_t k = 0; k < kLanes; ++k) lane[k] = static_cast<uint32_t>(k);
  return lane < (U{} + static_cast<uint32_t>(count)) ? value : F{};
}

CKPT_WIDE float row_max(const float *row, size_t count) {
  F max = all(kLowest);
  each(count, [&](size_t k, size_t n) { max = at_least(load(row + k, n, kLowest), max); });
  return largest(max);
}

// row[k] = exp(row[k] - shift); returns the sum.
CKPT_WIDE float exponentials(float *row, size_t count, float shift) {
  F sum = {};
  each(count, [&](size_t k, size_t n) {
    const F e = exponential(load(row + k, n, shift) - shift);
    store(row + k, e, n);
    sum += there(e, n);
  });
  return total(sum);
}

CKPT_WIDE void zeros(float *row, size_t count) {
  each(count, [=](size_t k, size_t n) { store(row + k, F{}, n); });
}

CKPT_WIDE size_t valid_columns(const CausalRows &shape, size_t row) {
  const ptrdiff_t valid = shape.first_valid + static_cast<ptrdiff_t>(row), columns = static_cast<ptrdiff_t>(shape.columns);
  return static_cast<size_t>(valid < 0 ? 0 : valid > columns ? columns : valid);
}

void row_max_and_sum(const float *row, size_t count, float *max, float *sum) {
  const float m = row_max(row, count);
  F lanes = {};
  each(count, [&](size_t k, size_t n) {
    lanes += there(exponential(load(row + k, n, m) - m), n);
  });
  *max = m;
  *sum = total(lanes);
}

void cross_entropy_gradient(const float *logits, float lse, size_t count, float factor, float *grad) {
  each(count, [=](size_t k, size_t n) { store(grad + k, exponential(load(logits + k, n) - lse) * factor, n); });
}

void causal_softmax(CausalRows shape, float *scores, size_t ld) {
  for (size_t row = 0; row < shape.rows; ++row, scores += ld) {
    const size_t valid = valid_columns(shape, row);
    const float sum = exponentials(scores, valid, row_max(scores, valid));
    const float inverse = 1.0f / sum;
    each(valid, [=](size_t k, size_t n) { store(scores + k, load(scores + k, n) * inverse, n); });
    zeros(scores + valid, shape.columns - valid);
  }
}

void causal_softmax_backward(CausalRows shape, const float *weights, size_t weights_ld, float *grad, size_t grad_ld) {
  for (size_t row = 0; row < shape.rows; ++row, weights += weights_ld, grad += grad_ld) {
    const size_t valid = valid_columns(shape, row);
    F sum = {};
    each(valid, [&](size_t k, size_t n) { sum += load(weights + k, n) * load(grad + k, n); });
    const float dot = total(sum);
    each(valid, [=](size_t k, size_t n) { store(grad + k, load(weights + k, n) * (load(grad + k, n) - dot), n); });
    zeros(grad + valid, shape.columns - valid);
  }
}

void online_softmax(CausalRows shape, float *scores, size_t ld, float *max, float *sum, float *out, size_t out_ld,
                    size_t out_columns, bool first) {
  for (size_t row = 0; row < shape.rows; ++row, scores += ld, out += out_ld) {
    const size_t valid = valid_columns(shape, row);
    const float in_tile = row_max(scores, valid);
    const float before = first ? kLowest : max[row];
    const float now = in_tile < before ? before : in_tile;
    const float row_sum = exponentials(scores, valid, now);
    zeros(scores + valid, shape.columns - valid);
    max[row] = now;
    if (first) {
      sum[row] = row_sum;
      continue;
    }
    if (now == before) {  // nothing to rescale
      sum[row] += row_sum;
      continue;
    }
    const float factor = exponential(all(before - now))[0];
    sum[row] = sum[row] * factor + row_sum;
    each(out_columns, [=](size_t k, size_t n) { store(out + k, load(out + k, n) * factor, n); });
  }
}

void weights_from_lse(CausalRows shape, float *scores, size_t ld, const float *lse) {
  for (size_t row = 0; row < shape.rows; ++row, scores += ld) {
    const size_t valid = valid_columns(shape, row);
    const float shift = lse[row];
    each(valid, [=](size_t k, size_t n) { store(scores + k, exponential(load(scores + k, n) - shift), n); });
    zeros(scores + valid, shape.columns - valid);
  }
}

void score_gradient(CausalRows shape, const float *weights, float *grad, size_t ld, const float *row_dot) {
  for (size_t row = 0; row < shape.rows; ++row, weights += ld, grad += ld) {
    const size_t valid = valid_columns(shape, row);
    const float dot = row_dot[row];
    each(valid, [=](size_t k, size_t n) { store(grad + k, load(weights + k, n) * (load(grad + k, n) - dot), n); });
    zeros(grad + valid, shape.columns - valid);
  }
}

void row_dots(const float *a, size_t a_ld, const float *b, size_t b_ld, size_t rows, size_t columns, float *out) {
  for (size_t row = 0; row < rows; ++row, a += a_ld, b += b_ld) {
    F sum = {};
    each(columns, [&](size_t k, size_t n) { sum += load(a + k, n) * load(b + k, n); });
    out[row] = total(sum);
  }
}

}  // namespace
}  // namespace ckpt::ops
