// Dropout, sums, norms, AdamW, normal values: one pass over flat arrays.
#include <cmath>
#include <cstring>

#include "ops/cpu/dropout.h"
#include "ops/cpu/functions.h"

namespace ckpt::ops::cpu {

ckpt_status add(void *self, const void *a, const void *b, size_t count, void *out) {
  const Work work(self);
  work.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    work.kernels.add(floats(a) + first, floats(b) + first, n, floats(out) + first);
  });
  return CKPT_OK;
}

ckpt_status dropout_forward(void *self, const void *in, const void *residual, float probability, const ckpt_philox *philox, size_t count,
                            void *out) {
  const Dropout dropout(probability, philox);
  const Work work(self);
  work.chunks(count, kChunkElements, [&](size_t first, size_t total, size_t, unsigned) {
    dropout.pieces(first, total, [&](size_t offset, size_t n, Mask mask) {
      const size_t at = first + offset;
      work.kernels.bias_mask_residual(floats(in) + at, nullptr, residual == nullptr ? nullptr : floats(residual) + at, mask, n,
                                      floats(out) + at);
    });
  });
  return CKPT_OK;
}

ckpt_status dropout_backward(void *self, const void *out_grad, float probability, const ckpt_philox *philox, size_t count, void *in_grad,
                             uint32_t accumulate) {
  const Dropout dropout(probability, philox);
  const Work work(self);
  work.chunks(count, kChunkElements, [&](size_t first, size_t total, size_t, unsigned) {
    dropout.pieces(first, total, [&](size_t offset, size_t n, Mask mask) {
      work.kernels.mask_gradient(floats(out_grad) + first + offset, mask, n, floats(in_grad) + first + offset, accumulate != 0);
    });
  });
  return CKPT_OK;
}

ckpt_status norm(void *self, const float *values, size_t count, double *out_norm) {
  Work work(self);
  const size_t chunks = chunk_count(count, kChunkElements);
  CKPT_OPS_TRY(work.reserve(2 * chunks, 0));
  double *const sums = reinterpret_cast<double *>(work.shared());
  work.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t chunk, unsigned) {
    sums[chunk] = work.kernels.sum_of_squares(values + first, n);
  });
  double sum = 0.0;
  for (size_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk];
  *out_norm = std::sqrt(sum);
  return CKPT_OK;
}

ckpt_status clip(void *self, const float *grads, size_t count, float grad_scale, float max_norm, double *out_norm) {
  double length = 0.0;
  CKPT_OPS_TRY(norm(self, grads, count, &length));
  length *= std::fabs(static_cast<double>(grad_scale));
  const double most = static_cast<double>(max_norm);
  static_cast<Context *>(self)->clip_scale = max_norm > 0.0f && length > most ? static_cast<float>(most / length) : 1.0f;
  if (out_norm != nullptr) *out_norm = length;
  return CKPT_OK;
}

ckpt_status adamw(void *self, const DeviceAdamw *step, size_t count, const float *grads, void *parameters, float *,
                  float *first_moment, float *second_moment) {
  const Work work(self);
  AdamwStep mine = {};
  mine.beta1 = step->beta1;
  mine.beta2 = step->beta2;
  mine.epsilon = step->epsilon;
  mine.decay = step->decay;
  mine.grad_scale = step->clip != 0 ? step->grad_scale * work.context().clip_scale : step->grad_scale;
  mine.step_size = step->step_size;
  mine.second_moment_scale = step->second_moment_scale;
  work.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    work.kernels.adamw(mine, n, grads + first, floats(parameters) + first, first_moment + first, second_moment + first);
  });
  return CKPT_OK;
}

ckpt_status normal(void *self, const ckpt_philox *philox, float mean, float stddev, size_t count, void *out) {
  const Work work(self);
  work.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    (void)ckpt_philox_normal(philox, first, n, mean, stddev, floats(out) + first);
  });
  return CKPT_OK;
}

ckpt_status from_float(void *self, const float *in, size_t count, void *out) {
  const Work work(self);
  work.chunks(count, kChunkElements, [&](size_t first, size_t n, size_t, unsigned) {
    std::memcpy(floats(out) + first, in + first, n * sizeof(float));
  });
  return CKPT_OK;
}

ckpt_status to_float(void *self, const void *in, size_t count, float *out) { return from_float(self, floats(in), count, out); }

}  // namespace ckpt::ops::cpu
