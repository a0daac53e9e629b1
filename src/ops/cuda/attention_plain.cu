// Causal attention that stores its weights, [batch, heads, sequence, sequence] in the context's type. Forward is the tiled kernel, then
// the weights from its sums; backward reads the weights where the tiled one makes them again, and takes from them each row's sum of
// weight * weight's gradient, which the tiled one has from the output.
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/table.h"

namespace ckpt::ops::cuda {

ckpt_status attention_forward(Context &context, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                              float dropout_probability, const ckpt_philox *philox, void *weights, void *out) {
  constexpr const char *kName = "attention_forward";
  Attention shape = {};
  size_t head_count = 0;
  CKPT_CUDA(attention_of(kName, context, batch, sequence, heads, channels, 0.0f, nullptr, aligned16(qkv), &shape,
                                 &head_count));
  Parts parts;
  const size_t lse_part = parts.add<float>(head_count * sequence);
  CKPT_CUDA(parts.take(context));
  float *const lse = parts.at<float>(lse_part);
  CKPT_CUDA(attention_tiled_forward(context, qkv, batch, sequence, heads, channels, dropout_probability, philox, lse, out));
  return with_kernels(context, shape.head_size, [&](auto kernels) {
    using K = decltype(kernels);
    using T = typename K::Element;
    return launch_tiles(context, kName, K::write_weights(), shape, head_count, K::kForwardRows, K::kThreads, K::kForwardBytes,
                        static_cast<const T *>(qkv), lse, static_cast<T *>(weights));
  });
}

ckpt_status attention_backward(Context &context, const void *qkv, const void *weights, const void *out_grad, size_t batch,
                               size_t sequence, size_t heads, size_t channels, float dropout_probability, const ckpt_philox *philox,
                               void *qkv_grad) {
  constexpr const char *kName = "attention_backward";
  Attention shape = {};
  size_t head_count = 0;
  CKPT_CUDA(attention_of(kName, context, batch, sequence, heads, channels, dropout_probability, philox,
                                 aligned16(qkv, out_grad, qkv_grad), &shape, &head_count));
  Parts parts;
  const size_t dots_part = parts.add<float>(head_count * sequence);
  CKPT_CUDA(parts.take(context));
  float *const dots = parts.at<float>(dots_part);
  return with_kernels(context, shape.head_size, [&](auto kernels) {
    using K = decltype(kernels);
    using T = typename K::Element;
    const auto pass = [&](auto kernel) {
      return launch_tiles(context, kName, kernel, shape, head_count, K::kBackwardRows, K::kThreads, K::kBackwardBytes, static_cast<const T *>(qkv),
                          static_cast<const T *>(weights), dots, static_cast<const T *>(out_grad), dots, static_cast<T *>(qkv_grad));
    };
    CKPT_CUDA(pass(K::template backward<tensor::Pass::dots, true>()));
    CKPT_CUDA(pass(K::template backward<tensor::Pass::keys, true>()));
    return pass(K::template backward<tensor::Pass::queries, true>());
  });
}

}  // namespace ckpt::ops::cuda
