// Dropout, sums, norms, AdamW, normal values: one pass over flat arrays.
#include <cmath>

#include "ops/cpu/dropout.h"
#include "ops/handle.h"

using namespace ckpt::ops;

extern "C" {

ckpt_status ckpt_ops_add(ckpt_ops *ops, const float *a, const float *b, size_t count, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_add").pointers({{"ops", ops}, {"a", a}, {"b", b}, {"out", out}}).count("count", count).status());
  const Turn turn(ops);
  turn.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    turn.kernels.add(a + first, b + first, n, out + first);
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_dropout_forward(ckpt_ops *ops, const float *in, const float *residual, float probability,
                                     const ckpt_philox *philox, size_t count, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_dropout_forward").pointers({{"ops", ops}, {"in", in}, {"out", out}}).count("count", count)
                   .probability("probability", probability, philox).status());
  const Dropout dropout(probability, philox);
  CKPT_OPS_TRY(dropout.reaches(count));
  const Turn turn(ops);
  turn.chunks(count, kChunkElements, [&](size_t first, size_t total, size_t, unsigned) {
    dropout.pieces(first, total, [&](size_t offset, size_t n, Mask mask) {
      const size_t at = first + offset;
      turn.kernels.bias_mask_residual(in + at, nullptr, residual == nullptr ? nullptr : residual + at, mask, n, out + at);
    });
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_dropout_backward(ckpt_ops *ops, const float *out_grad, float probability, const ckpt_philox *philox,
                                      size_t count, float *in_grad, uint32_t accumulate) {
  CKPT_OPS_TRY(Check("ckpt_ops_dropout_backward").pointers({{"ops", ops}, {"out_grad", out_grad}, {"in_grad", in_grad}})
                   .count("count", count).probability("probability", probability, philox).status());
  const Dropout dropout(probability, philox);
  CKPT_OPS_TRY(dropout.reaches(count));
  const Turn turn(ops);
  turn.chunks(count, kChunkElements, [&](size_t first, size_t total, size_t, unsigned) {
    dropout.pieces(first, total, [&](size_t offset, size_t n, Mask mask) {
      turn.kernels.mask_gradient(out_grad + first + offset, mask, n, in_grad + first + offset, accumulate != 0);
    });
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_norm(ckpt_ops *ops, const float *values, size_t count, double *out_norm) {
  CKPT_OPS_TRY(Check("ckpt_ops_norm").pointers({{"ops", ops}, {"values", values}, {"out_norm", out_norm}})
                   .count("count", count).status());
  Turn turn(ops);
  const size_t chunks = chunk_count(count, kChunkElements);
  CKPT_OPS_TRY(turn.reserve(2 * chunks, 0));
  double *const sums = reinterpret_cast<double *>(turn.shared());
  turn.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t chunk, unsigned) {
    sums[chunk] = turn.kernels.sum_of_squares(values + first, n);
  });
  double sum = 0.0;
  for (size_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk];
  *out_norm = std::sqrt(sum);
  return CKPT_OK;
}

static ckpt_status check_adamw(const ckpt_adamw_desc &desc) {
  const struct {
    const char *name;
    float value, end;  // 0 <= value < end
  } fields[] = {{"learning_rate", desc.learning_rate, INFINITY}, {"beta1", desc.beta1, 1.0f}, {"beta2", desc.beta2, 1.0f},
                {"epsilon", desc.epsilon, INFINITY}, {"weight_decay", desc.weight_decay, INFINITY}};
  for (const auto &field : fields)
    if (!(field.value >= 0.0f && field.value < field.end))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_adamw: desc.%s is %g, expected 0 <= %s < %g", field.name,
                  static_cast<double>(field.value), field.name, static_cast<double>(field.end));
  if (!std::isfinite(desc.grad_scale))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_adamw: desc.grad_scale is %g, expected a finite number",
                static_cast<double>(desc.grad_scale));
  if (desc.max_norm != 0.0f)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_adamw: desc.max_norm is %g, expected 0: only ckpt_gpt_update clips",
                static_cast<double>(desc.max_norm));
  if (desc.step == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_adamw: desc.step is 0, expected 1 or more");
  return CKPT_OK;
}

ckpt_status ckpt_ops_adamw(ckpt_ops *ops, const ckpt_adamw_desc *desc, size_t count, const float *grads, float *parameters,
                           float *first_moment, float *second_moment) {
  ckpt_adamw_desc mine = CKPT_ADAMW_DESC_INIT;
  CKPT_OPS_TRY(read_struct("ckpt_ops_adamw", desc, 40, &mine));
  CKPT_OPS_TRY(Check("ckpt_ops_adamw")
                   .pointers({{"ops", ops}, {"grads", grads}, {"parameters", parameters}, {"first_moment", first_moment},
                              {"second_moment", second_moment}})
                   .count("count", count).status());
  CKPT_OPS_TRY(check_adamw(mine));
  AdamwStep step = {};
  step.beta1 = mine.beta1 == 0.0f ? 0.9f : mine.beta1;
  step.beta2 = mine.beta2 == 0.0f ? 0.999f : mine.beta2;
  step.epsilon = mine.epsilon == 0.0f ? 1e-8f : mine.epsilon;
  step.grad_scale = mine.grad_scale == 0.0f ? 1.0f : mine.grad_scale;
  const double rate = static_cast<double>(mine.learning_rate), t = static_cast<double>(mine.step);
  step.decay = static_cast<float>(1.0 - rate * static_cast<double>(mine.weight_decay));
  step.step_size = static_cast<float>(rate / (1.0 - std::pow(static_cast<double>(step.beta1), t)));
  step.second_moment_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(step.beta2), t)));
  const Turn turn(ops);
  turn.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    turn.kernels.adamw(step, n, grads + first, parameters + first, first_moment + first, second_moment + first);
  });
  return CKPT_OK;
}

ckpt_status ckpt_ops_normal(ckpt_ops *ops, const ckpt_philox *philox, float mean, float stddev, size_t count, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_normal").pointers({{"ops", ops}, {"philox", philox}, {"out", out}}).count("count", count).status());
  if (!std::isfinite(mean) || !(stddev >= 0.0f && std::isfinite(stddev)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_normal: mean %g, stddev %g, expected finite numbers, stddev >= 0",
                static_cast<double>(mean), static_cast<double>(stddev));
  // The last element alone: it finds an offset that leaves no room before anything is written.
  if (const ckpt_status status = ckpt_philox_normal(philox, count - 1, 1, mean, stddev, out)) return fail_as_core(status);
  const Turn turn(ops);
  turn.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    (void)ckpt_philox_normal(philox, first, n, mean, stddev, out + first);
  });
  return CKPT_OK;
}

}  // extern "C"
