// Level 1: attention. Arguments are checked here, once for every device.
#include "ops/handle.h"

using namespace ckpt::ops;

namespace {

struct Shape {
  size_t batch, sequence, heads, channels;
};

Status check_attention(Check &check, const Shape &s, float probability, const ckpt_philox *philox) noexcept {
  return check.sizes({{"batch", s.batch}, {"heads", s.heads}, {"sequence", s.sequence}, {"sequence", s.sequence}})
      .sizes({{"batch", s.batch}, {"sequence", s.sequence}, {"channels", s.channels}})
      .sizes({{"batch", s.batch}, {"sequence", s.sequence}, {"3 * channels", 3 * s.channels}})
      .divides({"heads", s.heads}, {"channels", s.channels})
      .dropout("dropout_probability", probability, philox, s.batch * s.heads * s.sequence * s.sequence).status();
}

}  // namespace

extern "C" {

ckpt_status ckpt_ops_attention_forward(ckpt_ops *ops, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                                       float dropout_probability, const ckpt_philox *philox, void *weights, void *out) {
  Check check("ckpt_ops_attention_forward");
  check.pointers({{"ops", ops}, {"qkv", qkv}, {"weights", weights}, {"out", out}});
  CKPT_OPS_TRY(check_attention(check, {batch, sequence, heads, channels}, dropout_probability, philox));
  return call(ops, &DeviceOps::attention_forward, qkv, batch, sequence, heads, channels, dropout_probability, philox, weights, out);
}

ckpt_status ckpt_ops_attention_backward(ckpt_ops *ops, const void *qkv, const void *weights, const void *out_grad, size_t batch,
                                        size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                        const ckpt_philox *philox, void *qkv_grad) {
  Check check("ckpt_ops_attention_backward");
  check.pointers({{"ops", ops}, {"qkv", qkv}, {"weights", weights}, {"out_grad", out_grad}, {"qkv_grad", qkv_grad}});
  CKPT_OPS_TRY(check_attention(check, {batch, sequence, heads, channels}, dropout_probability, philox));
  return call(ops, &DeviceOps::attention_backward, qkv, weights, out_grad, batch, sequence, heads, channels, dropout_probability, philox,
              qkv_grad);
}

ckpt_status ckpt_ops_attention_tiled_forward(ckpt_ops *ops, const void *qkv, size_t batch, size_t sequence, size_t heads,
                                             size_t channels, float dropout_probability, const ckpt_philox *philox, float *lse,
                                             void *out) {
  Check check("ckpt_ops_attention_tiled_forward");
  check.pointers({{"ops", ops}, {"qkv", qkv}, {"lse", lse}, {"out", out}});
  CKPT_OPS_TRY(check_attention(check, {batch, sequence, heads, channels}, dropout_probability, philox));
  return call(ops, &DeviceOps::attention_tiled_forward, qkv, batch, sequence, heads, channels, dropout_probability, philox, lse, out);
}

ckpt_status ckpt_ops_attention_tiled_backward(ckpt_ops *ops, const void *qkv, const void *out, const float *lse, const void *out_grad,
                                              size_t batch, size_t sequence, size_t heads, size_t channels,
                                              float dropout_probability, const ckpt_philox *philox, void *qkv_grad) {
  Check check("ckpt_ops_attention_tiled_backward");
  check.pointers({{"ops", ops}, {"qkv", qkv}, {"out", out}, {"lse", lse}, {"out_grad", out_grad}, {"qkv_grad", qkv_grad}});
  CKPT_OPS_TRY(check_attention(check, {batch, sequence, heads, channels}, dropout_probability, philox));
  return call(ops, &DeviceOps::attention_tiled_backward, qkv, out, lse, out_grad, batch, sequence, heads, channels, dropout_probability,
              philox, qkv_grad);
}

}  // extern "C"
