// The layers' kernels on a device: what a plugin gives as its interface "ops". One function for each of level 1 of ckpt/ops.h, with the
// arguments of the C function of that name unless a text here says otherwise; libckpt_ops checks arguments and calls.
//
// Arrays are device memory. `void` stands for elements of the context's type: activations, weights, gradients of activations;
// `float` stays float32 whatever that type is: statistics, losses, gradients of parameters (added to in float32), moments, master
// weights. Every sum is accumulated in float32 or wider. Work is enqueued on the context's stream and never waits, but where a text
// says so. The same bits for the same arguments: no floating-point atomics, no dependence on addresses, and a
// value that is made again from the same inputs has the bits of the first time, whatever else the call made then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ckpt/rng.h"

namespace ckpt::ops {

inline constexpr uint32_t kDeviceOpsVersion = 1;

enum : uint32_t { kFloat32 = 0, kBfloat16 = 1, kFloat16 = 2 };  // CKPT_DTYPE_*

struct DeviceAdamw {
  float beta1, beta2, epsilon;
  float decay;                // 1 - learning_rate * weight_decay
  float grad_scale;
  float step_size;            // learning_rate / (1 - beta1^t)
  float second_moment_scale;  // 1 / sqrt(1 - beta2^t)
  uint32_t clip;              // 1: times the factor that the latest `clip` left on the device
};

struct DeviceOps {
  uint32_t version;  // kDeviceOpsVersion
  uint32_t largest_head;  // channels of a head, at most; 0: any

  // `device` is what Table::open gave. The context's own memory (partial sums, cuBLASLt's workspace) grows to the largest need; a
  // growth while the stream is captured is CKPT_ERROR_CAPTURE: run the step once before.
  ckpt_status (*create)(void *device, void *stream, uint32_t dtype, void **out_self);
  void (*destroy)(void *self);
  // Names of what is in use, for ckpt_ops_info: "sm_90", "cublasLt 13.0.1".
  void (*describe)(void *self, char isa[16], char blas[64]);
  // Waits for the stream. INVALID_ARGUMENT names the first token or target out of range since the last check (their rows are NaN).
  ckpt_status (*check)(void *self);

  ckpt_status (*embedding_forward)(void *self, const int32_t *tokens, const void *token_table, const void *position_table,
                                   size_t batch, size_t sequence, size_t channels, size_t vocabulary, void *out);
  ckpt_status (*embedding_backward)(void *self, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence,
                                    size_t channels, size_t vocabulary, float *token_grad, float *position_grad);

  ckpt_status (*linear_forward)(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t inputs,
                                size_t outputs, void *out);
  ckpt_status (*linear_residual_forward)(void *self, const void *in, const void *weight, const void *bias, const void *residual,
                                         float dropout_probability, const ckpt_philox *philox, size_t rows, size_t inputs,
                                         size_t outputs, void *out);
  ckpt_status (*linear_backward)(void *self, const void *in, const void *weight, const void *out_grad, size_t rows, size_t inputs,
                                 size_t outputs, void *in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad);

  ckpt_status (*layernorm_forward)(void *self, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                                   float epsilon, void *out, float *mean, float *rstd);
  ckpt_status (*layernorm_backward)(void *self, const void *in, const float *mean, const float *rstd, const void *weight,
                                    const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                                    uint32_t accumulate, float *weight_grad, float *bias_grad);
  ckpt_status (*gelu_forward)(void *self, const void *in, const void *bias, size_t rows, size_t columns, void *out);
  ckpt_status (*gelu_backward)(void *self, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns,
                               void *in_grad, uint32_t accumulate, float *bias_grad);

  ckpt_status (*attention_forward)(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                                   float dropout_probability, const ckpt_philox *philox, void *weights, void *out);
  ckpt_status (*attention_backward)(void *self, const void *qkv, const void *weights, const void *out_grad, size_t batch,
                                    size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                    const ckpt_philox *philox, void *qkv_grad);
  ckpt_status (*attention_tiled_forward)(void *self, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                                         float dropout_probability, const ckpt_philox *philox, float *lse, void *out);
  ckpt_status (*attention_tiled_backward)(void *self, const void *qkv, const void *out, const float *lse, const void *out_grad,
                                          size_t batch, size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                          const ckpt_philox *philox, void *qkv_grad);

  ckpt_status (*dropout_forward)(void *self, const void *in, const void *residual, float probability, const ckpt_philox *philox,
                                 size_t count, void *out);
  ckpt_status (*dropout_backward)(void *self, const void *out_grad, float probability, const ckpt_philox *philox, size_t count,
                                  void *in_grad, uint32_t accumulate);
  ckpt_status (*add)(void *self, const void *a, const void *b, size_t count, void *out);

  // Mean cross-entropy over rows that come in one or several calls (chunks of logits). The sums live on the device. loss_begin and
  // loss_scale get the targets of all rows, so that one out of range is named with its place among them.
  ckpt_status (*loss_begin)(void *self, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index);
  ckpt_status (*loss_add)(void *self, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary,
                          int32_t ignore_index, float *lse);
  ckpt_status (*loss_end)(void *self, float *out_loss);  // device memory
  // The factor of each row's gradient: loss_grad / (targets that count among all `rows`), 0 where none counts. loss_grad is
  // *device_loss_grad where that is not NULL, else host_loss_grad.
  ckpt_status (*loss_scale)(void *self, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index,
                            const float *device_loss_grad, float host_loss_grad);
  ckpt_status (*loss_gradient)(void *self, const void *logits, const int32_t *targets, const float *lse, size_t rows,
                               size_t vocabulary, int32_t ignore_index, void *logits_grad);  // may equal logits

  // The L2 norm of float32 values; waits for the stream.
  ckpt_status (*norm)(void *self, const float *values, size_t count, double *out_norm);
  // Leaves min(1, max_norm / (|grad_scale| * norm)) on the device (1 where max_norm is 0). out_norm NULL: never waits; else the norm
  // times |grad_scale|, after a wait.
  ckpt_status (*clip)(void *self, const float *grads, size_t count, float grad_scale, float max_norm, double *out_norm);
  // `master` [count] float32 is updated and `parameters` become its rounded copy; NULL: parameters are float32 and are updated themselves.
  ckpt_status (*adamw)(void *self, const DeviceAdamw *step, size_t count, const float *grads, void *parameters, float *master,
                       float *first_moment, float *second_moment);
  // Normal values, rounded to the context's type; the float32 ones are the CPU's bits.
  ckpt_status (*normal)(void *self, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out);
  // Rounds float32 values to the context's type; and back.
  ckpt_status (*from_float)(void *self, const float *in, size_t count, void *out);
  ckpt_status (*to_float)(void *self, const void *in, size_t count, float *out);
};

}  // namespace ckpt::ops
