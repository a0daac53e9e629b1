#include "ops/cpu/functions.h"

#include <cstdio>

namespace ckpt::ops::cpu {

void describe(void *self, char isa[16], char blas[64]) {
  std::snprintf(isa, 16, "%s", static_cast<const Context *>(self)->kernels.isa);
  blas::describe(blas, 64);
}

// All is done, and what was out of range was found when it came.
ckpt_status check(void *) { return CKPT_OK; }

const DeviceOps kTable = {
    .version = kDeviceOpsVersion,
    .largest_head = 0,
    .create = nullptr,   // a context belongs to a handle: see handle.cpp
    .destroy = nullptr,
    .describe = describe,
    .check = check,
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .linear_forward = linear_forward,
    .linear_residual_forward = linear_residual_forward,
    .linear_backward = linear_backward,
    .layernorm_forward = layernorm_forward,
    .layernorm_backward = layernorm_backward,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .attention_tiled_forward = attention_tiled_forward,
    .attention_tiled_backward = attention_tiled_backward,
    .dropout_forward = dropout_forward,
    .dropout_backward = dropout_backward,
    .add = add,
    .loss_begin = loss_begin,
    .loss_add = loss_add,
    .loss_end = loss_end,
    .loss_scale = loss_scale,
    .loss_gradient = loss_gradient,
    .norm = norm,
    .clip = clip,
    .adamw = adamw,
    .normal = normal,
    .from_float = from_float,
    .to_float = to_float,
};

Status check_indices(const char *function, const char *name, const int32_t *indices, size_t count, size_t bound, const int32_t *ignored) {
  for (size_t k = 0; k < count; ++k) {
    const int32_t index = indices[k];
    if ((index < 0 || static_cast<size_t>(index) >= bound) && (ignored == nullptr || index != *ignored))
      return fail(CKPT_ERROR_INVALID_ARGUMENT, "%s: %s[%zu] is %d, expected 0 <= %s < %zu", function, name, k, index, name, bound);
  }
  return CKPT_OK;
}

}  // namespace ckpt::ops::cpu
