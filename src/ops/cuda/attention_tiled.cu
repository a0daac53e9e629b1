// Causal attention in tiles that keeps the logarithm of each row's sum of exponentials (Dao, Fu, Ermon, Rudra, Re: FlashAttention, 2022,
// arXiv 2205.14135; Dao: FlashAttention-2, 2023, arXiv 2307.08691). Backward is two kernels, one for the queries' gradients and one for
// the keys' and values', each of which makes the weights again: two products of seven are made twice, and for that no sum is
// ever added to by two blocks, so it needs no atomics and gives the same bits every time.
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/table.h"

namespace ckpt::ops::cuda {

namespace {

constexpr unsigned kDotThreads = 128;

// dots[head][row] = out . out_grad of that head and row: the sum over a row of weight * weight's gradient. A thread reads one head's
// part of a row, 16 bytes at a time: neighbours' parts follow in memory.
template <class T>
__global__ void __launch_bounds__(kDotThreads) dots_of_rows(const Attention a, uint64_t count, const T *out, const T *out_grad, float *dots) {
  for (uint64_t index = thread_of_grid(); index < count; index += threads_of_grid()) {
    const uint64_t row = index / a.heads, head = row / a.sequence * a.heads + index % a.heads;
    const T *const x = out + index * a.head_size, *const y = out_grad + index * a.head_size;
    float dot = 0.0f;
    if (a.vectors != 0) {
      for (uint32_t k = 0; k < a.head_size; k += kLanes<T>) {
        const Floats<kLanes<T>> xs = load_vector(x + k), ys = load_vector(y + k);
#pragma unroll
        for (unsigned i = 0; i < kLanes<T>; ++i) dot = fused(xs.at[i], ys.at[i], dot);
      }
    } else {
      for (uint32_t k = 0; k < a.head_size; ++k) dot = fused(as_float(x[k]), as_float(y[k]), dot);
    }
    dots[head * a.sequence + row % a.sequence] = dot;
  }
}

}  // namespace

ckpt_status attention_tiled_forward(Context &context, const void *qkv, size_t batch, size_t sequence, size_t heads, size_t channels,
                                    float dropout_probability, const ckpt_philox *philox, float *lse, void *out) {
  constexpr const char *kName = "attention_tiled_forward";
  Attention shape = {};
  size_t head_count = 0;
  CKPT_CUDA(attention_of(kName, context, batch, sequence, heads, channels, dropout_probability, philox,
                                 aligned16(qkv, out), &shape, &head_count));
  return with_kernels(context, shape.head_size, [&](auto kernels) {
    using K = decltype(kernels);
    using T = typename K::Element;
    return launch_tiles(context, kName, K::forward(), shape, head_count, K::kForwardRows, K::kThreads, K::kForwardBytes,
                        static_cast<const T *>(qkv), lse, static_cast<T *>(out));
  });
}

ckpt_status attention_tiled_backward(Context &context, const void *qkv, const void *out, const float *lse, const void *out_grad,
                                     size_t batch, size_t sequence, size_t heads, size_t channels, float dropout_probability,
                                     const ckpt_philox *philox, void *qkv_grad) {
  constexpr const char *kName = "attention_tiled_backward";
  Attention shape = {};
  size_t head_count = 0;
  CKPT_CUDA(attention_of(kName, context, batch, sequence, heads, channels, dropout_probability, philox,
                                 aligned16(qkv, out, out_grad, qkv_grad), &shape, &head_count));
  const size_t count = head_count * sequence;
  Parts parts;
  const size_t dots_part = parts.add<float>(count);
  CKPT_CUDA(parts.take(context));
  float *const dots = parts.at<float>(dots_part);
  return with_kernels(context, shape.head_size, [&](auto kernels) {
    using K = decltype(kernels);
    using T = typename K::Element;
    CKPT_CUDA(launch(context, kName, dots_of_rows<T>, dim3(context.blocks(count, kDotThreads)), dim3(kDotThreads), 0, shape, count,
                     static_cast<const T *>(out), static_cast<const T *>(out_grad), dots));
    const auto pass = [&](auto kernel) {
      return launch_tiles(context, kName, kernel, shape, head_count, K::kBackwardRows, K::kThreads, K::kBackwardBytes, static_cast<const T *>(qkv),
                          static_cast<const T *>(nullptr), lse, static_cast<const T *>(out_grad), dots, static_cast<T *>(qkv_grad));
    };
    CKPT_CUDA(pass(K::template backward<tensor::Pass::keys, false>()));
    return pass(K::template backward<tensor::Pass::queries, false>());
  });
}

}  // namespace ckpt::ops::cuda
