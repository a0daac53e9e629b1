// Level 1: flat arrays. Arguments are checked here, once for every device.
#include <cmath>

#include "ops/handle.h"

using namespace ckpt::ops;

namespace {

Status check_adamw(const char *function, const ckpt_ops *ops, const ckpt_adamw_desc &desc) noexcept {
  const struct {
    const char *name;
    float value, end;  // 0 <= value < end
  } fields[] = {{"learning_rate", desc.learning_rate, INFINITY}, {"beta1", desc.beta1, 1.0f}, {"beta2", desc.beta2, 1.0f},
                {"epsilon", desc.epsilon, INFINITY}, {"weight_decay", desc.weight_decay, INFINITY}};
  for (const auto &field : fields)
    if (!(field.value >= 0.0f && field.value < field.end))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.%s is %g, expected 0 <= %s < %g", function, field.name,
                  static_cast<double>(field.value), field.name, static_cast<double>(field.end));
  if (!std::isfinite(desc.grad_scale))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.grad_scale is %g, expected a finite number", function,
                static_cast<double>(desc.grad_scale));
  if (desc.step == 0) return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.step is 0, expected 1 or more", function);
  if (desc.master_weights == nullptr && ops->dtype != CKPT_DTYPE_FLOAT32)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.master_weights is NULL, expected the parameters in float32: the handle's dtype is %s",
                function, dtype_name(ops->dtype));
  if (desc.master_weights != nullptr && ops->dtype == CKPT_DTYPE_FLOAT32)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: desc.master_weights is %p, expected NULL: the handle's dtype is float32", function,
                static_cast<const void *>(desc.master_weights));
  return CKPT_OK;
}

}  // namespace

namespace ckpt::ops {

Status adamw_step(const char *function, const ckpt_ops *ops, const ckpt_adamw_desc &desc, DeviceAdamw *out_step) noexcept {
  CKPT_OPS_TRY(check_adamw(function, ops, desc));
  DeviceAdamw step = {};
  step.beta1 = desc.beta1 == 0.0f ? 0.9f : desc.beta1;
  step.beta2 = desc.beta2 == 0.0f ? 0.999f : desc.beta2;
  step.epsilon = desc.epsilon == 0.0f ? 1e-8f : desc.epsilon;
  step.grad_scale = desc.grad_scale == 0.0f ? 1.0f : desc.grad_scale;
  const double rate = static_cast<double>(desc.learning_rate), t = static_cast<double>(desc.step);
  step.decay = static_cast<float>(1.0 - rate * static_cast<double>(desc.weight_decay));
  step.step_size = static_cast<float>(rate / (1.0 - std::pow(static_cast<double>(step.beta1), t)));
  step.second_moment_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(step.beta2), t)));
  *out_step = step;
  return CKPT_OK;
}

}  // namespace ckpt::ops

extern "C" {

ckpt_status ckpt_ops_add(ckpt_ops *ops, const void *a, const void *b, size_t count, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_add").pointers({{"ops", ops}, {"a", a}, {"b", b}, {"out", out}}).count("count", count).status());
  return call(ops, &DeviceOps::add, a, b, count, out);
}

ckpt_status ckpt_ops_dropout_forward(ckpt_ops *ops, const void *in, const void *residual, float probability, const ckpt_philox *philox,
                                     size_t count, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_dropout_forward").pointers({{"ops", ops}, {"in", in}, {"out", out}}).count("count", count)
                   .dropout("probability", probability, philox, count).status());
  return call(ops, &DeviceOps::dropout_forward, in, residual, probability, philox, count, out);
}

ckpt_status ckpt_ops_dropout_backward(ckpt_ops *ops, const void *out_grad, float probability, const ckpt_philox *philox, size_t count,
                                      void *in_grad, uint32_t accumulate) {
  CKPT_OPS_TRY(Check("ckpt_ops_dropout_backward").pointers({{"ops", ops}, {"out_grad", out_grad}, {"in_grad", in_grad}})
                   .count("count", count).dropout("probability", probability, philox, count).status());
  return call(ops, &DeviceOps::dropout_backward, out_grad, probability, philox, count, in_grad, accumulate);
}

ckpt_status ckpt_ops_norm(ckpt_ops *ops, const float *values, size_t count, double *out_norm) {
  CKPT_OPS_TRY(Check("ckpt_ops_norm").pointers({{"ops", ops}, {"values", values}, {"out_norm", out_norm}})
                   .count("count", count).status());
  return call(ops, &DeviceOps::norm, values, count, out_norm);
}

ckpt_status ckpt_ops_adamw(ckpt_ops *ops, const ckpt_adamw_desc *desc, size_t count, const float *grads, void *parameters,
                           float *first_moment, float *second_moment) {
  constexpr const char *kName = "ckpt_ops_adamw";
  ckpt_adamw_desc mine = CKPT_ADAMW_DESC_INIT;
  CKPT_OPS_TRY(read_struct(kName, desc, 40, &mine));
  CKPT_OPS_TRY(Check(kName)
                   .pointers({{"ops", ops}, {"grads", grads}, {"parameters", parameters}, {"first_moment", first_moment},
                              {"second_moment", second_moment}})
                   .count("count", count).status());
  if (mine.max_norm != 0.0f)
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_adamw: desc.max_norm is %g, expected 0: only ckpt_gpt_update clips",
                static_cast<double>(mine.max_norm));
  DeviceAdamw step = {};
  CKPT_OPS_TRY(adamw_step(kName, ops, mine, &step));
  return call(ops, &DeviceOps::adamw, &step, count, grads, parameters, mine.master_weights, first_moment, second_moment);
}

ckpt_status ckpt_ops_normal(ckpt_ops *ops, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_normal").pointers({{"ops", ops}, {"philox", philox}, {"out", out}}).count("count", count)
                   .room(philox, count).status());
  if (!std::isfinite(mean) || !(stddev >= 0.0f && std::isfinite(stddev)))
    return fail(CKPT_ERROR_INVALID_ARGUMENT, "ckpt_ops_normal: mean %g, stddev %g, expected finite numbers, stddev >= 0",
                static_cast<double>(mean), static_cast<double>(stddev));
  return call(ops, &DeviceOps::normal, philox, mean, stddev, count, out);
}

ckpt_status ckpt_ops_from_float(ckpt_ops *ops, const float *in, size_t count, void *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_from_float").pointers({{"ops", ops}, {"in", in}, {"out", out}}).count("count", count).status());
  return call(ops, &DeviceOps::from_float, in, count, out);
}

ckpt_status ckpt_ops_to_float(ckpt_ops *ops, const void *in, size_t count, float *out) {
  CKPT_OPS_TRY(Check("ckpt_ops_to_float").pointers({{"ops", ops}, {"in", in}, {"out", out}}).count("count", count).status());
  return call(ops, &DeviceOps::to_float, in, count, out);
}

}  // extern "C"
