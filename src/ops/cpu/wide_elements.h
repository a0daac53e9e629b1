// Element-wise kernels, GELU and sums over columns. See wide.h.
#pragma once

#include "ops/cpu/wide.h"

namespace ckpt::ops {
namespace {

void add(const float *a, const float *b, size_t count, float *out) {
  each(count, [=](size_t k, size_t n) { store(out + k, load(a + k, n) + load(b + k, n), n); });
}

template <bool kBias, bool kMask, bool kResidual>
void bias_mask_residual_as(const float *in, const float *bias, const float *residual, const Mask &mask, size_t count, float *out) {
  each(count, [&](size_t k, size_t n) {
    F value = load(in + k, n);
    if (kBias) value += load(bias + k, n);
    if (kMask) value = masked(value, load_words(mask.words + k, n), mask);
    if (kResidual) value = load(residual + k, n) + value;
    store(out + k, value, n);
  });
}

void bias_mask_residual(const float *in, const float *bias, const float *residual, Mask mask, size_t count, float *out) {
  using Fn = void (*)(const float *, const float *, const float *, const Mask &, size_t, float *);
  static constexpr Fn kFns[2][2][2] = {
      {{bias_mask_residual_as<false, false, false>, bias_mask_residual_as<false, false, true>},
       {bias_mask_residual_as<false, true, false>, bias_mask_residual_as<false, true, true>}},
      {{bias_mask_residual_as<true, false, false>, bias_mask_residual_as<true, false, true>},
       {bias_mask_residual_as<true, true, false>, bias_mask_residual_as<true, true, true>}}};
  kFns[bias != nullptr][mask.words != nullptr][residual != nullptr](in, bias, residual, mask, count, out);
}

void mask_gradient(const float *grad, Mask mask, size_t count, float *out, bool accumulate) {
  each(count, [&](size_t k, size_t n) {
    F value = load(grad + k, n);
    if (mask.words != nullptr) value = masked(value, load_words(mask.words + k, n), mask);
    if (accumulate) value = load(out + k, n) + value;
    store(out + k, value, n);
  });
}

void scale(float factor, size_t count, float *values) {
  each(count, [=](size_t k, size_t n) { store(values + k, load(values + k, n) * factor, n); });
}

CKPT_WIDE F square_root(F value) {
  float lanes[kLanes];
  __builtin_memcpy(lanes, &value, sizeof value);
  for (size_t k = 0; k < kLanes; ++k) lanes[k] = __builtin_sqrtf(lanes[k]);
  __builtin_memcpy(&value, lanes, sizeof value);
  return value;
}

void adamw(const AdamwStep &step, size_t count, const float *grads, float *parameters, float *first_moment, float *second_moment) {
  each(count, [&](size_t k, size_t n) {
    const F grad = load(grads + k, n) * step.grad_scale;
    const F first = load(first_moment + k, n) * step.beta1 + grad * (1.0f - step.beta1);
    const F second = load(second_moment + k, n) * step.beta2 + grad * grad * (1.0f - step.beta2);
    const F divisor = square_root(second) * step.second_moment_scale + step.epsilon;
    store(parameters + k, load(parameters + k, n) * step.decay - first / divisor * step.step_size, n);
    store(first_moment + k, first, n);
    store(second_moment + k, second, n);
  });
}

double sum_of_squares(const float *values, size_t count) {
  D sum = {};
  each(count, [&](size_t k, size_t n) {
    const D value = __builtin_convertvector(load(values + k, n), D);
    sum += value * value;
  });
  double all_lanes = 0.0;
  for (size_t k = 0; k < kLanes; ++k) all_lanes += sum[k];
  return all_lanes;
}

void column_sums(const float *in, size_t in_ld, size_t rows, size_t columns, float *sums) {
  each(columns, [=](size_t k, size_t n) { store(sums + k, load(in + k, n), n); });
  for (size_t row = 1; row < rows; ++row) add(sums, in + row * in_ld, columns, sums);
}

// gelu(x) = x s, s = 1 / (1 + exp(-u)), u = x (a + b x^2): 0.5 (1 + tanh(u / 2)) = s.
constexpr float kGeluA = 1.5957691216057308f;     // 2 sqrt(2 / pi)
constexpr float kGeluB = 0.0713548162726002527f;  // a * 0.044715
// Where gelu is 0 or x, and its slope 0 or 1, within a float32's smallest: beyond, the exponential is clamped and no longer makes up for
// powers of x.
constexpr float kGeluEnd = 16.0f;

template <bool kBias>
void gelu_forward_as(const float *in, const float *bias, size_t rows, size_t columns, float *out) {
  for (size_t row = 0; row < rows; ++row, in += columns, out += columns)
    each(columns, [=](size_t k, size_t n) {
      F x = load(in + k, n);
      if (kBias) x += load(bias + k, n);
      x = at_least(x, all(-kGeluEnd));
      const F e = exponential(-x * (x * x * kGeluB + kGeluA));
      store(out + k, x / (e + 1.0f), n);
    });
}

void gelu_forward(const float *in, const float *bias, size_t rows, size_t columns, float *out) {
  (bias != nullptr ? gelu_forward_as<true> : gelu_forward_as<false>)(in, bias, rows, columns, out);
}

template <bool kBias, bool kSums, bool kAccumulate>
void gelu_backward_as(const float *in, const float *bias, const float *out_grad, size_t rows, size_t columns, float *in_grad,
                      float *bias_sums) {
  if (kSums) each(columns, [=](size_t k, size_t n) { store(bias_sums + k, F{}, n); });
  for (size_t row = 0; row < rows; ++row, in += columns, out_grad += columns, in_grad += columns)
    each(columns, [=](size_t k, size_t n) {
      F x = load(in + k, n);
      if (kBias) x += load(bias + k, n);
      x = at_most(at_least(x, all(-kGeluEnd)), all(kGeluEnd));
      const F xx = x * x;
      const F e = exponential(-x * (xx * kGeluB + kGeluA));
      const F s = 1.0f / (e + 1.0f);
      // d/dx = s + x s (1 - s) u', with 1 - s = e s free of cancellation
      const F slope = s + x * s * (e * s) * (xx * (3.0f * kGeluB) + kGeluA);
      const F grad = slope * load(out_grad + k, n);
      if (kSums) store(bias_sums + k, load(bias_sums + k, n) + grad, n);
      store(in_grad + k, kAccumulate ? load(in_grad + k, n) + grad : grad, n);
    });
}

void gelu_backward(const float *in, const float *bias, const float *out_grad, size_t rows, size_t columns, float *in_grad,
                   bool accumulate, float *bias_sums) {
  using Fn = void (*)(const float *, const float *, const float *, size_t, size_t, float *, float *);
  static constexpr Fn kFns[2][2][2] = {
      {{gelu_backward_as<false, false, false>, gelu_backward_as<false, false, true>},
       {gelu_backward_as<false, true, false>, gelu_backward_as<false, true, true>}},
      {{gelu_backward_as<true, false, false>, gelu_backward_as<true, false, true>},
       {gelu_backward_as<true, true, false>, gelu_backward_as<true, true, true>}}};
  kFns[bias != nullptr][bias_sums != nullptr][accumulate](in, bias, out_grad, rows, columns, in_grad, bias_sums);
}

}  // namespace
}  // namespace ckpt::ops
