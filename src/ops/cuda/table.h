// The operations of device_ops.h as C++ functions of a Context, one file each (named behind each group), and the table made of them.
// Arguments have been checked by libckpt_ops: pointers are not NULL but where the text of ckpt/ops.h allows it, sizes are at least 1 and
// their products below 2^48, a philox is there where a probability is not 0. `void` arrays have the context's element type.
#pragma once

#include "ops/cuda/context.h"

namespace ckpt::ops::cuda {

// table.cu
const DeviceOps *table() noexcept;

// context.cu
ckpt_status check(Context &context);

// embedding.cu
ckpt_status embedding_forward(Context &context, const int32_t *tokens, const void *token_table, const void *position_table,
                              size_t batch, size_t sequence, size_t channels, size_t vocabulary, void *out);
ckpt_status embedding_backward(Context &context, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence,
                               size_t channels, size_t vocabulary, float *token_grad, float *position_grad);

// linear.cu
ckpt_status linear_forward(Context &context, const void *in, const void *weight, const void *bias, size_t rows, size_t inputs,
                           size_t outputs, void *out);
ckpt_status linear_residual_forward(Context &context, const void *in, const void *weight, const void *bias, const void *residual,
                                    float dropout_probability, const ckpt_philox *philox, size_t rows, size_t inputs,
                                    size_t outputs, void *out);
ckpt_status linear_backward(Context &context, const void *in, const void *weight, const void *out_grad, size_t rows, size_t inputs,
                            size_t outputs, void *in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad);

// rows.cu
ckpt_status layernorm_forward(Context &context, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                              float epsilon, void *out, float *mean, float *rstd);
ckpt_status layernorm_backward(Context &context, const void *in, const float *mean, const float *rstd, const void *weight,
                               const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                               uint32_t accumulate, float *weight_grad, float *bias_grad);
// sums[c] += the sum of column c of in [rows, columns], in an order that the shape fixes. Takes the workspace.
ckpt_status column_sums(Context &context, const void *in, size_t rows, size_t columns, float *sums);

// gelu.cu
ckpt_status gelu_forward(Context &context, const void *in, const void *bias, size_t rows, size_t columns, void *out);
ckpt_status gelu_backward(Context &context, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns,
                          void *in_grad, uint32_t accumulate, float *bias_grad);

// attention_plain.cu
ckpt_status attention_forward(Context &context, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                              float dropout_probability, const ckpt_philox *philox, void *weights, void *out);
ckpt_status attention_backward(Context &context, const void *qkv, const void *weights, const void *out_grad, size_t batch,
                               size_t sequence, size_t heads, size_t channels, float dropout_probability, const ckpt_philox *philox,
                               void *qkv_grad);

// attention_tiled.cu
ckpt_status attention_tiled_forward(Context &context, const void *qkv, size_t batch, size_t sequence, size_t heads,
                                    size_t channels, float dropout_probability, const ckpt_philox *philox, float *lse, void *out);
ckpt_status attention_tiled_backward(Context &context, const void *qkv, const void *out, const float *lse, const void *out_grad,
                                     size_t batch, size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                     const ckpt_philox *philox, void *qkv_grad);

// elements.cu
ckpt_status dropout_forward(Context &context, const void *in, const void *residual, float probability, const ckpt_philox *philox,
                            size_t count, void *out);
ckpt_status dropout_backward(Context &context, const void *out_grad, float probability, const ckpt_philox *philox, size_t count,
                             void *in_grad, uint32_t accumulate);
ckpt_status add(Context &context, const void *a, const void *b, size_t count, void *out);
ckpt_status normal(Context &context, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out);
ckpt_status from_float(Context &context, const float *in, size_t count, void *out);
ckpt_status to_float(Context &context, const void *in, size_t count, float *out);
// out = residual + dropout(in + bias) over [rows, columns], the mask's element row * columns + column. bias [columns] and residual may be
// NULL; probability 0: philox may be NULL. out may equal in or residual.
ckpt_status bias_dropout_residual(Context &context, const void *in, const void *bias, const void *residual, float probability,
                                  const ckpt_philox *philox, size_t rows, size_t columns, void *out);

// loss.cu
ckpt_status loss_begin(Context &context, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index);
ckpt_status loss_add(Context &context, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary,
                     int32_t ignore_index, float *lse);
ckpt_status loss_end(Context &context, float *out_loss);
ckpt_status loss_scale(Context &context, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index,
                       const float *device_loss_grad, float host_loss_grad);
ckpt_status loss_gradient(Context &context, const void *logits, const int32_t *targets, const float *lse, size_t rows,
                          size_t vocabulary, int32_t ignore_index, void *logits_grad);

// adamw.cu
ckpt_status norm(Context &context, const float *values, size_t count, double *out_norm);
ckpt_status clip(Context &context, const float *grads, size_t count, float grad_scale, float max_norm, double *out_norm);
ckpt_status adamw(Context &context, const DeviceAdamw *step, size_t count, const float *grads, void *parameters, float *master,
                  float *first_moment, float *second_moment);

}  // namespace ckpt::ops::cuda
