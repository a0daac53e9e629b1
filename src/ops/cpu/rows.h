// Parts of the kernels over rows that layers put together differently. Arguments are checked already.
#pragma once

#include "ckpt/ops.h"

namespace ckpt::ops {

// INVALID_ARGUMENT names the first index outside [0, bound) that is not *ignored (NULL: none is).
ckpt_status check_indices(const char *function, const char *name, const int32_t *indices, size_t count, size_t bound,
                          const int32_t *ignored);

// Cross-entropy in pieces of rows: the sum of the rows' losses goes on from `sum`, in order, so pieces do not change its bits.
double cross_entropy_sum(ckpt_ops *ops, const float *logits, const int32_t *targets, size_t rows, size_t vocabulary,
                         int32_t ignore_index, float *lse, double sum) noexcept;
// Of all rows: the mean, and a row's share of the loss's gradient.
float mean_loss(const int32_t *targets, size_t rows, int32_t ignore_index, double sum) noexcept;
float row_loss_grad(const int32_t *targets, size_t rows, int32_t ignore_index, float loss_grad) noexcept;
void cross_entropy_gradient(ckpt_ops *ops, const float *logits, const int32_t *targets, const float *lse, size_t rows,
                            size_t vocabulary, int32_t ignore_index, float row_grad, float *logits_grad) noexcept;

}  // namespace ckpt::ops
