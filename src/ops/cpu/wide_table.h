// The table of one instruction set: CKPT_OPS_TABLE is its name, CKPT_OPS_ISA its text. See wide.h.
#pragma once

#include "ops/cpu/wide_elements.h"
#include "ops/cpu/wide_rows.h"

namespace ckpt::ops {

extern const Kernels CKPT_OPS_TABLE = {
    CKPT_OPS_ISA,
    add, bias_mask_residual, mask_gradient, scale, adamw, sum_of_squares,
    column_sums, gelu_forward, gelu_backward, layernorm_forward, layernorm_backward,
    row_max_and_sum, cross_entropy_gradient, causal_softmax, causal_softmax_backward,
    online_softmax, weights_from_lse, score_gradient, row_dots};

}  // namespace ckpt::ops
