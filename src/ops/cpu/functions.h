// The CPU's functions of a DeviceOps: `self` is a cpu::Context. Arguments are checked already; memory is the host's, elements are float32,
// and the work is done on return.
#pragma once

#include "ops/cpu/context.h"
#include "ops/device_ops.h"

namespace ckpt::ops::cpu {

void describe(void *self, char isa[16], char blas[64]);
ckpt_status check(void *self);
ckpt_status embedding_forward(void *self, const int32_t *tokens, const void *token_table, const void *position_table,
                              size_t batch, size_t sequence, size_t channels, size_t vocabulary, void *out);
ckpt_status embedding_backward(void *self, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence,
                               size_t channels, size_t vocabulary, float *token_grad, float *position_grad);
ckpt_status linear_forward(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t inputs,
                           size_t outputs, void *out);
ckpt_status linear_residual_forward(void *self, const void *in, const void *weight, const void *bias, const void *residual,
                                    float dropout_probability, const ckpt_philox *philox, size_t rows, size_t inputs,
                                    size_t outputs, void *out);
ckpt_status linear_backward(void *self, const void *in, const void *weight, const void *out_grad, size_t rows, size_t inputs,
                            size_t outputs, void *in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad);
ckpt_status layernorm_forward(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                              float epsilon, void *out, float *mean, float *rstd);
ckpt_status layernorm_backward(void *self, const void *in, const float *mean, const float *rstd, const void *weight,
                               const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                               uint32_t accumulate, float *weight_grad, float *bias_grad);
ckpt_status gelu_forward(void *self, const void *in, const void *bias, size_t rows, size_t columns, void *out);
ckpt_status gelu_backward(void *self, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns,
                          void *in_grad, uint32_t accumulate, float *bias_grad);
ckpt_status attention_forward(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                              float dropout_probability, const ckpt_philox *philox, void *weights, void *out);
ckpt_status attention_backward(void *self, const void *qkv, const void *weights, const void *out_grad, size_t batch,
                               size_t sequence, size_t heads, size_t channels, float dropout_probability,
                               const ckpt_philox *philox, void *qkv_grad);
ckpt_status attention_tiled_forward(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                                    float dropout_probability, const ckpt_philox *philox, float *lse, void *out);
ckpt_status attention_tiled_backward(void *self, const void *qkv, const void *out, const float *lse, const void *out_grad,
                                     size_t batch, size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                     const ckpt_philox *philox, void *qkv_grad);
ckpt_status dropout_forward(void *self, const void *in, const void *residual, float probability, const ckpt_philox *philox,
                            size_t count, void *out);
ckpt_status dropout_backward(void *self, const void *out_grad, float probability, const ckpt_philox *philox, size_t count,
                             void *in_grad, uint32_t accumulate);
ckpt_status add(void *self, const void *a, const void *b, size_t count, void *out);
ckpt_status loss_begin(void *self, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index);
ckpt_status loss_add(void *self, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index,
                     float *lse);
ckpt_status loss_end(void *self, float *out_loss);
ckpt_status loss_scale(void *self, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index,
                       const float *device_loss_grad, float host_loss_grad);
ckpt_status loss_gradient(void *self, const void *logits, const int32_t *targets, const float *lse, size_t rows,
                          size_t vocabulary, int32_t ignore_index, void *logits_grad);
ckpt_status norm(void *self, const float *values, size_t count, double *out_norm);
ckpt_status clip(void *self, const float *grads, size_t count, float grad_scale, float max_norm, double *out_norm);
ckpt_status adamw(void *self, const DeviceAdamw *step, size_t count, const float *grads, void *parameters, float *master,
                  float *first_moment, float *second_moment);
ckpt_status normal(void *self, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out);
ckpt_status from_float(void *self, const float *in, size_t count, void *out);
ckpt_status to_float(void *self, const void *in, size_t count, float *out);

extern const DeviceOps kTable;

// INVALID_ARGUMENT names the first index outside [0, bound) that is not *ignored (NULL: none is).
Status check_indices(const char *function, const char *name, const int32_t *indices, size_t count, size_t bound, const int32_t *ignored);

}  // namespace ckpt::ops::cpu
