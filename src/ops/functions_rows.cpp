// Level 1: products with weights, and work over rows. Arguments are checked here, once for every device.
#include <cmath>

#include "ops/cpu/functions.h"
#include "ops/handle.h"

using namespace ckpt::ops;

namespace {

// On a device indices are looked at by the kernels: see ckpt_ops_check.
Status check_indices(const ckpt_ops *ops, const char *function, const char *name, const int32_t *indices, size_t count, size_t bound,
                     const int32_t *ignored = nullptr) noexcept {
  return ops->on_host() ? cpu::check_indices(function, name, indices, count, bound, ignored) : CKPT_OK;
}

}  // namespace

extern "C" {

ckpt_status ckpt_ops_embedding_forward(ckpt_ops *ops, const int32_t *tokens, const void *token_table, const void *position_table,
                                       size_t batch, size_t sequence, size_t channels, size_t vocabulary, void *out) {
  constexpr const char *kName = "ckpt_ops_embedding_forward";
  CKPT_OPS_TRY(Check(kName)
                   .pointers({{"ops", ops}, {"tokens", tokens}, {"token_table", token_table}, {"out", out}})
                   .sizes({{"batch", batch}, {"sequence", sequence}, {"channels", channels}})
                   .sizes({{"vocabulary", vocabulary}, {"channels", channels}}).status());
  CKPT_OPS_TRY(check_indices(ops, kName, "tokens", tokens, batch * sequence, vocabulary));
  return call(ops, &DeviceOps::embedding_forward, tokens, token_table, position_table, batch, sequence, channels, vocabulary, out);
}

ckpt_status ckpt_ops_embedding_backward(ckpt_ops *ops, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence,
                                        size_t channels, size_t vocabulary, float *token_grad, float *position_grad) {
  constexpr const char *kName = "ckpt_ops_embedding_backward";
  CKPT_OPS_TRY(Check(kName).pointers({{"ops", ops}, {"tokens", tokens}, {"out_grad", out_grad}})
                   .sizes({{"batch", batch}, {"sequence", sequence}, {"channels", channels}})
                   .sizes({{"vocabulary", vocabulary}, {"channels", channels}}).status());
  CKPT_OPS_TRY(check_indices(ops, kName, "tokens", tokens, batch * sequence, vocabulary));
  return call(ops, &DeviceOps::embedding_backward, tokens, out_grad, batch, sequence, channels, vocabulary, token_grad, position_grad);
}

ckpt_status ckpt_ops_linear_forward(ckpt_ops *ops, const void *in, const void *weight, const void *bias, size_t rows, size_t inputs,
                                    size_t outputs, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_linear_forward").pointers({{"ops", ops}, {"in", in}, {"weight", weight}, {"out", out}})
                   .sizes({{"rows", rows}, {"inputs", inputs}}).sizes({{"rows", rows}, {"outputs", outputs}})
                   .sizes({{"outputs", outputs}, {"inputs", inputs}}).status());
  return call(ops, &DeviceOps::linear_forward, in, weight, bias, rows, inputs, outputs, out);
}

ckpt_status ckpt_ops_linear_residual_forward(ckpt_ops *ops, const void *in, const void *weight, const void *bias, const void *residual,
                                             float dropout_probability, const ckpt_philox *philox, size_t rows, size_t inputs,
                                             size_t outputs, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_linear_residual_forward")
                   .pointers({{"ops", ops}, {"in", in}, {"weight", weight}, {"residual", residual}, {"out", out}})
                   .sizes({{"rows", rows}, {"inputs", inputs}}).sizes({{"rows", rows}, {"outputs", outputs}})
                   .sizes({{"outputs", outputs}, {"inputs", inputs}})
                   .dropout("dropout_probability", dropout_probability, philox, rows * outputs).status());
  return call(ops, &DeviceOps::linear_residual_forward, in, weight, bias, residual, dropout_probability, philox, rows, inputs, outputs, out);
}

ckpt_status ckpt_ops_linear_backward(ckpt_ops *ops, const void *in, const void *weight, const void *out_grad, size_t rows, size_t inputs,
                                     size_t outputs, void *in_grad, uint32_t accumulate, float *weight_grad, float *bias_grad) {
  Check check("ckpt_ops_linear_backward");
  check.pointers({{"ops", ops}, {"out_grad", out_grad}}).sizes({{"rows", rows}, {"inputs", inputs}})
      .sizes({{"rows", rows}, {"outputs", outputs}}).sizes({{"outputs", outputs}, {"inputs", inputs}});
  if (weight_grad != nullptr) check.pointers({{"in", in}});
  if (in_grad != nullptr) check.pointers({{"weight", weight}});
  CKPT_OPS_TRY(check.status());
  return call(ops, &DeviceOps::linear_backward, in, weight, out_grad, rows, inputs, outputs, in_grad, accumulate, weight_grad, bias_grad);
}

ckpt_status ckpt_ops_layernorm_forward(ckpt_ops *ops, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                                       float epsilon, void *out, float *mean, float *rstd) {
  CKPT_OPS_TRY(Check("ckpt_ops_layernorm_forward")
                   .pointers({{"ops", ops}, {"in", in}, {"weight", weight}, {"bias", bias}, {"out", out}, {"mean", mean},
                              {"rstd", rstd}})
                   .sizes({{"rows", rows}, {"channels", channels}}).status());
  if (!(epsilon > 0.0f && std::isfinite(epsilon)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_layernorm_forward: epsilon is %g, expected a number above 0",
                static_cast<double>(epsilon));
  return call(ops, &DeviceOps::layernorm_forward, in, weight, bias, rows, channels, epsilon, out, mean, rstd);
}

ckpt_status ckpt_ops_layernorm_backward(ckpt_ops *ops, const void *in, const float *mean, const float *rstd, const void *weight,
                                        const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                                        uint32_t accumulate, float *weight_grad, float *bias_grad) {
  CKPT_OPS_TRY(Check("ckpt_ops_layernorm_backward")
                   .pointers({{"ops", ops}, {"in", in}, {"mean", mean}, {"rstd", rstd}, {"weight", weight},
                              {"out_grad", out_grad}, {"in_grad", in_grad}})
                   .sizes({{"rows", rows}, {"channels", channels}}).status());
  return call(ops, &DeviceOps::layernorm_backward, in, mean, rstd, weight, out_grad, residual_grad, rows, channels, in_grad, accumulate,
              weight_grad, bias_grad);
}

ckpt_status ckpt_ops_gelu_forward(ckpt_ops *ops, const void *in, const void *bias, size_t rows, size_t columns, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_gelu_forward").pointers({{"ops", ops}, {"in", in}, {"out", out}})
                   .sizes({{"rows", rows}, {"columns", columns}}).status());
  return call(ops, &DeviceOps::gelu_forward, in, bias, rows, columns, out);
}

ckpt_status ckpt_ops_gelu_backward(ckpt_ops *ops, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns,
                                   void *in_grad, uint32_t accumulate, float *bias_grad) {
  CKPT_OPS_TRY(Check("ckpt_ops_gelu_backward")
                   .pointers({{"ops", ops}, {"in", in}, {"out_grad", out_grad}, {"in_grad", in_grad}})
                   .sizes({{"rows", rows}, {"columns", columns}}).status());
  return call(ops, &DeviceOps::gelu_backward, in, bias, out_grad, rows, columns, in_grad, accumulate, bias_grad);
}

ckpt_status ckpt_ops_cross_entropy_forward(ckpt_ops *ops, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary,
                                           int32_t ignore_index, float *lse, float *out_loss) {
  constexpr const char *kName = "ckpt_ops_cross_entropy_forward";
  CKPT_OPS_TRY(Check(kName)
                   .pointers({{"ops", ops}, {"logits", logits}, {"targets", targets}, {"lse", lse}, {"out_loss", out_loss}})
                   .sizes({{"rows", rows}, {"vocabulary", vocabulary}}).status());
  CKPT_OPS_TRY(check_indices(ops, kName, "targets", targets, rows, vocabulary, &ignore_index));
  const std::lock_guard<std::mutex> lock(ops->sequence);
  CKPT_OPS_TRY(call(ops, &DeviceOps::loss_begin, targets, rows, vocabulary, ignore_index));
  CKPT_OPS_TRY(call(ops, &DeviceOps::loss_add, logits, targets, rows, vocabulary, ignore_index, lse));
  return call(ops, &DeviceOps::loss_end, out_loss);
}

ckpt_status ckpt_ops_cross_entropy_backward(ckpt_ops *ops, const void *logits, const int32_t *targets, const float *lse, size_t rows,
                                            size_t vocabulary, int32_t ignore_index, float loss_grad, void *logits_grad) {
  constexpr const char *kName = "ckpt_ops_cross_entropy_backward";
  CKPT_OPS_TRY(Check(kName)
                   .pointers({{"ops", ops}, {"logits", logits}, {"targets", targets}, {"lse", lse},
                              {"logits_grad", logits_grad}})
                   .sizes({{"rows", rows}, {"vocabulary", vocabulary}}).status());
  CKPT_OPS_TRY(check_indices(ops, kName, "targets", targets, rows, vocabulary, &ignore_index));
  const std::lock_guard<std::mutex> lock(ops->sequence);
  CKPT_OPS_TRY(call(ops, &DeviceOps::loss_scale, targets, rows, vocabulary, ignore_index, static_cast<const float *>(nullptr), loss_grad));
  return call(ops, &DeviceOps::loss_gradient, logits, targets, lse, rows, vocabulary, ignore_index, logits_grad);
}

}  // extern "C"
