// The innermost loops, one table per instruction set: functions over a few rows that know no threads. The files behind them are
// compiled for one instruction set each and include nothing whose inline functions the linker could pick for another.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ckpt::ops {

// A piece of a dropout mask: element e is kept, and multiplied by `scale`, iff words[e] <= last. words NULL: no dropout.
struct Mask {
  const uint32_t *words;
  uint32_t last;
  float scale;
};

struct AdamwStep {
  float learning_rate, beta1, beta2, epsilon, decay;  // decay: 1 - learning_rate * weight_decay
  float grad_scale;
  float step_size;              // learning_rate / (1 - beta1^t)
  float second_moment_scale;    // 1 / sqrt(1 - beta2^t)
};

// Rows of scores in a causal block: row k has `first_valid` + k valid columns (clamped to [0, columns]).
struct CausalRows {
  size_t rows;
  size_t columns;
  ptrdiff_t first_valid;
};

struct Kernels {
  const char *isa;

  // element-wise; in and out may be the same
  void (*add)(const float *a, const float *b, size_t count, float *out);
  // out = residual + mask(in + bias); bias and residual may be NULL
  void (*bias_mask_residual)(const float *in, const float *bias, const float *residual, Mask mask, size_t count, float *out);
  void (*mask_gradient)(const float *grad, Mask mask, size_t count, float *out, bool accumulate);
  void (*scale)(float factor, size_t count, float *values);
  void (*adamw)(const AdamwStep &step, size_t count, const float *grads, float *parameters, float *first_moment,
                float *second_moment);
  double (*sum_of_squares)(const float *values, size_t count);

  // rows of `columns`
  void (*column_sums)(const float *in, size_t in_ld, size_t rows, size_t columns, float *sums);
  void (*gelu_forward)(const float *in, const float *bias, size_t rows, size_t columns, float *out);
  void (*gelu_backward)(const float *in, const float *bias, const float *out_grad, size_t rows, size_t columns,
                        float *in_grad, bool accumulate, float *bias_sums);  // bias_sums: set, or NULL
  void (*layernorm_forward)(const float *in, const float *weight, const float *bias, size_t rows, size_t channels,
                            float epsilon, float *out, float *mean, float *rstd);
  void (*layernorm_backward)(const float *in, const float *mean, const float *rstd, const float *weight,
                             const float *out_grad, const float *residual_grad, size_t rows, size_t channels, float *in_grad,
                             bool accumulate, float *weight_sums, float *bias_sums);  // sums: set

  // softmax
  void (*row_max_and_sum)(const float *row, size_t count, float *max, float *sum);  // sum of exp(row - max)
  void (*cross_entropy_gradient)(const float *logits, float lse, size_t count, float scale, float *grad);
  void (*causal_softmax)(CausalRows shape, float *scores, size_t ld);
  // in: weights and the gradient of the weights; out: the gradient of the scores, in its place
  void (*causal_softmax_backward)(CausalRows shape, const float *weights, size_t weights_ld, float *grad, size_t grad_ld);
  // online softmax (Milakov, Gimelshein 2018): scores become exp(score - max), max and sum move on, out is rescaled
  void (*online_softmax)(CausalRows shape, float *scores, size_t ld, float *max, float *sum, float *out, size_t out_ld,
                         size_t out_columns, bool first);
  void (*weights_from_lse)(CausalRows shape, float *scores, size_t ld, const float *lse);
  // grad = weights * (grad - row_dot)
  void (*score_gradient)(CausalRows shape, const float *weights, float *grad, size_t ld, const float *row_dot);
  void (*row_dots)(const float *a, size_t a_ld, const float *b, size_t b_ld, size_t rows, size_t columns, float *out);
};

extern const Kernels kGenericKernels;
#if defined(CKPT_OPS_X86)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

// Of a CKPT_ISA_*; NULL where this machine or build does not have it.
const Kernels *kernels_of(uint32_t isa) noexcept;

}  // namespace ckpt::ops
