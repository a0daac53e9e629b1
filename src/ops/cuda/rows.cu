// Layer normalisation over rows of [rows, channels], and sums over columns.
//
//   forward    m = mean(x), r = 1 / sqrt(mean((x - m)^2) + epsilon), out = (x - m) r w + b
//   backward   h = (x - m) r, g = dy w:   dx (+)= residual + r (g - mean(g) - h mean(g h)),   dw += sum of dy h,   db += sum of dy
//
// Rows of up to 1024 channels belong to one warp, up to 4096 (backward: 3072, where its sums still fit) to a block of four, and are
// held in registers as they were loaded: every array is read once. A thread of backward has the same columns in every row of its
// block, so that their sums are registers too. Longer rows are read again for each pass. Which of these it is, and with it the order
// of every sum, is the shape's matter alone: arrays that do not begin at 16 bytes are read element by element into the same places.
#include "ops/cuda/columns.h"

#include <algorithm>

namespace ckpt::ops::cuda {
namespace {

constexpr unsigned kBlock = 128;  // four warps: with up to 160 registers a thread, three blocks and 12 warps to a multiprocessor
constexpr unsigned kWarps = kBlock / kWarp;

// The sum over the kGroup warps that share a row.
template <unsigned kGroup>
CKPT_ON_DEVICE float row_sum(float value, float *shared) {
  value = warp_sum(value);
  if constexpr (kGroup > 1) {
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = shared[0];
#pragma unroll
    for (unsigned k = 1; k < kGroup; ++k) value += shared[k];
    __syncthreads();
  }
  return value;
}

template <class T>
struct Forward {
  const T *in, *weight, *bias;
  size_t rows, channels;
  float epsilon, share;  // 1 / channels
  bool aligned;
  T *out;
  float *mean, *rstd;
};

template <class T>
CKPT_ON_DEVICE void store_normalised(const Forward<T> &f, size_t row, uint64_t at, const Floats<kLanes<T>> &x, float m, float r) {
  const auto w = load_row(f.weight, at, f.channels, f.aligned), b = load_row(f.bias, at, f.channels, f.aligned);
  Floats<kLanes<T>> y;
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) y.at[k] = fused(product(x.at[k] - m, r), w.at[k], b.at[k]);
  store_row(f.out + row * f.channels, at, f.channels, f.aligned, y);
}

// kGroup warps a row, kHeld vectors a thread.
template <class T, unsigned kGroup, unsigned kHeld>
__global__ void __launch_bounds__(kBlock) forward_held(Forward<T> f) {
  constexpr unsigned kN = kLanes<T>, kThreads = kGroup * kWarp, kRows = kBlock / kThreads;
  __shared__ float shared[kWarps];
  const unsigned thread = threadIdx.x % kThreads;
  for (size_t row = static_cast<size_t>(blockIdx.x) * kRows + threadIdx.x / kThreads; row < f.rows; row += static_cast<size_t>(gridDim.x) * kRows) {
    Packed<T> held[kHeld];
    float total = 0.0f;
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v) held[v] = load_packed(f.in + row * f.channels, (v * kThreads + thread) * kN, f.channels, f.aligned);
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v)
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) total = sum(total, as_float(held[v].at[k]));
    const float m = product(row_sum<kGroup>(total, shared), f.share);
    float squares = 0.0f;
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v)
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        if (const float d = as_float(held[v].at[k]) - m; (v * kThreads + thread) * kN + k < f.channels) squares = fused(d, d, squares);
    const float r = 1.0f / sqrtf(fused(row_sum<kGroup>(squares, shared), f.share, f.epsilon));
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v) store_normalised(f, row, (v * kThreads + thread) * kN, unpacked(held[v]), m, r);
    if (thread == 0) f.mean[row] = m, f.rstd[row] = r;
  }
}

// A block a row, of any length.
template <class T>
__global__ void __launch_bounds__(kBlock) forward_long(Forward<T> f) {
  constexpr unsigned kN = kLanes<T>;
  __shared__ float shared[kWarps];
  for (size_t row = blockIdx.x; row < f.rows; row += gridDim.x) {
    const T *const in = f.in + row * f.channels;
    float total = 0.0f;
    for (uint64_t at = threadIdx.x * kN; at < f.channels; at += kBlock * kN) {
      const auto x = load_row(in, at, f.channels, f.aligned);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) total = sum(total, x.at[k]);
    }
    const float m = product(row_sum<kWarps>(total, shared), f.share);
    float squares = 0.0f;
    for (uint64_t at = threadIdx.x * kN; at < f.channels; at += kBlock * kN) {
      const auto x = load_row(in, at, f.channels, f.aligned);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        if (const float d = x.at[k] - m; at + k < f.channels) squares = fused(d, d, squares);
    }
    const float r = 1.0f / sqrtf(fused(row_sum<kWarps>(squares, shared), f.share, f.epsilon));
    for (uint64_t at = threadIdx.x * kN; at < f.channels; at += kBlock * kN)
      store_normalised(f, row, at, load_row(in, at, f.channels, f.aligned), m, r);
    if (threadIdx.x == 0) f.mean[row] = m, f.rstd[row] = r;
  }
}

template <class T>
struct Backward {
  const T *in, *weight, *out_grad, *residual_grad;
  const float *mean, *rstd;
  size_t rows, channels;
  float share;
  bool aligned, accumulate;
  T *in_grad;
  float *partial;         // [blocks][2 channels], weights before biases; NULL: not wanted
  size_t rows_of_block;
};

// What a vector adds to mean(g) and mean(g h).
template <unsigned N>
CKPT_ON_DEVICE void add_products(const Floats<N> &x, const Floats<N> &grad, const Floats<N> &weight, float m, float r, float *sum_g, float *sum_gh) {
#pragma unroll
  for (unsigned k = 0; k < N; ++k) {
    const float g = product(grad.at[k], weight.at[k]);
    *sum_g = sum(*sum_g, g);
    *sum_gh = fused(g, product(x.at[k] - m, r), *sum_gh);
  }
}

template <class T>
CKPT_ON_DEVICE void store_gradient(const Backward<T> &b, size_t row, uint64_t at, const Floats<kLanes<T>> &x, const Floats<kLanes<T>> &grad,
                                   float m, float r, float mean_g, float mean_gh) {
  const size_t begin = row * b.channels;
  const auto w = load_row(b.weight, at, b.channels, b.aligned);
  Floats<kLanes<T>> out, more = {}, before = {};
  if (b.residual_grad != nullptr) more = load_row(b.residual_grad + begin, at, b.channels, b.aligned);
  if (b.accumulate) before = load_row(b.in_grad + begin, at, b.channels, b.aligned);
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) {
    const float h = product(x.at[k] - m, r);
    const float inner = fused(-h, mean_gh, sum(product(grad.at[k], w.at[k]), -mean_g));
    out.at[k] = sum(before.at[k], fused(inner, r, more.at[k]));
  }
  store_row(b.in_grad + begin, at, b.channels, b.aligned, out);
}

// A block's sums of dw and db to its row of partial sums; warps that have the same columns take turns.
template <unsigned kGroup, unsigned kHeld, unsigned kN>
CKPT_ON_DEVICE void store_sums(const Floats<kN> (&weights)[kHeld], const Floats<kN> (&biases)[kHeld], size_t channels, float *partial) {
  constexpr unsigned kThreads = kGroup * kWarp;
  const unsigned thread = threadIdx.x % kThreads;
  if constexpr (kGroup == kWarps) {
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v)
#pragma unroll
      for (unsigned k = 0; k < kN; ++k)
        if (const size_t at = (v * kThreads + thread) * kN + k; at < channels) {
          partial[at] = weights[v].at[k];
          partial[channels + at] = biases[v].at[k];
        }
  } else {
    // Element k of a vector of all threads side by side: no two lanes in one bank.
    __shared__ float sums[2][kHeld * kN * kThreads];
    for (unsigned turn = 0; turn < kBlock / kThreads; ++turn) {
      if (threadIdx.x / kThreads == turn)
#pragma unroll
        for (unsigned v = 0; v < kHeld; ++v)
#pragma unroll
          for (unsigned k = 0; k < kN; ++k) {
            const unsigned at = (v * kN + k) * kThreads + thread;
            sums[0][at] = turn == 0 ? weights[v].at[k] : sum(sums[0][at], weights[v].at[k]);
            sums[1][at] = turn == 0 ? biases[v].at[k] : sum(sums[1][at], biases[v].at[k]);
          }
      __syncthreads();
    }
    for (unsigned column = threadIdx.x; column < channels; column += kBlock) {
      const unsigned at = (column / (kThreads * kN) * kN + column % kN) * kThreads + column / kN % kThreads;
      partial[column] = sums[0][at];
      partial[channels + column] = sums[1][at];
    }
  }
}

template <class T, unsigned kGroup, unsigned kHeld>
__global__ void __launch_bounds__(kBlock) backward_held(Backward<T> b) {
  constexpr unsigned kN = kLanes<T>, kThreads = kGroup * kWarp, kRows = kBlock / kThreads;
  __shared__ float shared[kWarps];
  const unsigned thread = threadIdx.x % kThreads;
  Floats<kN> weights[kHeld] = {}, biases[kHeld] = {};
  const size_t begin = blockIdx.x * b.rows_of_block, end = begin + b.rows_of_block < b.rows ? begin + b.rows_of_block : b.rows;
  for (size_t row = begin + threadIdx.x / kThreads; row < end; row += kRows) {
    const float m = b.mean[row], r = b.rstd[row];
    Packed<T> x[kHeld], grad[kHeld];
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v) {
      x[v] = load_packed(b.in + row * b.channels, (v * kThreads + thread) * kN, b.channels, b.aligned);
      grad[v] = load_packed(b.out_grad + row * b.channels, (v * kThreads + thread) * kN, b.channels, b.aligned);
    }
    float sum_g = 0.0f, sum_gh = 0.0f;
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v) {
      const auto xs = unpacked(x[v]), grads = unpacked(grad[v]);
      add_products(xs, grads, load_row(b.weight, (v * kThreads + thread) * kN, b.channels, b.aligned), m, r, &sum_g, &sum_gh);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) {
        weights[v].at[k] = fused(grads.at[k], product(xs.at[k] - m, r), weights[v].at[k]);
        biases[v].at[k] = sum(biases[v].at[k], grads.at[k]);
      }
    }
    const float mean_g = product(row_sum<kGroup>(sum_g, shared), b.share), mean_gh = product(row_sum<kGroup>(sum_gh, shared), b.share);
#pragma unroll
    for (unsigned v = 0; v < kHeld; ++v)
      store_gradient(b, row, (v * kThreads + thread) * kN, unpacked(x[v]), unpacked(grad[v]), m, r, mean_g, mean_gh);
  }
  if (b.partial != nullptr) store_sums<kGroup>(weights, biases, b.channels, b.partial + blockIdx.x * 2 * b.channels);
}

// A block a row, of any length; the sums over rows are columns_of_norm's.
template <class T>
__global__ void __launch_bounds__(kBlock) backward_long(Backward<T> b) {
  constexpr unsigned kN = kLanes<T>;
  __shared__ float shared[kWarps];
  for (size_t row = blockIdx.x; row < b.rows; row += gridDim.x) {
    const size_t begin = row * b.channels;
    const float m = b.mean[row], r = b.rstd[row];
    float sum_g = 0.0f, sum_gh = 0.0f;
    for (uint64_t at = threadIdx.x * kN; at < b.channels; at += kBlock * kN)
      add_products(load_row(b.in + begin, at, b.channels, b.aligned), load_row(b.out_grad + begin, at, b.channels, b.aligned),
                   load_row(b.weight, at, b.channels, b.aligned), m, r, &sum_g, &sum_gh);
    const float mean_g = product(row_sum<kWarps>(sum_g, shared), b.share), mean_gh = product(row_sum<kWarps>(sum_gh, shared), b.share);
    for (uint64_t at = threadIdx.x * kN; at < b.channels; at += kBlock * kN)
      store_gradient(b, row, at, load_row(b.in + begin, at, b.channels, b.aligned),
                     load_row(b.out_grad + begin, at, b.channels, b.aligned), m, r, mean_g, mean_gh);
  }
}

// Sums over the rows of a chunk: of dy h to partial[chunk][0 ...], of dy behind them.
template <class T>
__global__ void __launch_bounds__(kColumnBlock) columns_of_norm(Backward<T> b) {
  constexpr unsigned kN = kLanes<T>;
  const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * kWarp + threadIdx.x) * kN;
  const size_t begin = blockIdx.y * b.rows_of_block, end = begin + b.rows_of_block < b.rows ? begin + b.rows_of_block : b.rows;
  Floats<kN> weights = {}, biases = {};
  for (size_t row = begin + threadIdx.y; row < end; row += kColumnRows) {
    const float m = b.mean[row], r = b.rstd[row];
    const auto x = load_row(b.in + row * b.channels, at, b.channels, b.aligned), grad = load_row(b.out_grad + row * b.channels, at, b.channels, b.aligned);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) {
      weights.at[k] = fused(grad.at[k], product(x.at[k] - m, r), weights.at[k]);
      biases.at[k] = sum(biases.at[k], grad.at[k]);
    }
  }
  float *const partial = b.partial + blockIdx.y * 2 * b.channels;
  store_columns(weights, at, b.channels, partial);
  __syncthreads();
  store_columns(biases, at, b.channels, partial + b.channels);
}

template <class T>
__global__ void __launch_bounds__(kColumnBlock) sum_columns(const T *in, size_t rows, size_t columns, size_t rows_of_chunk, bool aligned, float *partial) {
  constexpr unsigned kN = kLanes<T>;
  const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * kWarp + threadIdx.x) * kN;
  const size_t begin = blockIdx.y * rows_of_chunk, end = begin + rows_of_chunk < rows ? begin + rows_of_chunk : rows;
  Floats<kN> sums = {};
  for (size_t row = begin + threadIdx.y; row < end; row += kColumnRows) {
    const auto x = load_row(in + row * columns, at, columns, aligned);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) sums.at[k] = sum(sums.at[k], x.at[k]);
  }
  store_columns(sums, at, columns, partial + blockIdx.y * columns);
}

constexpr unsigned kAddRows = 32;  // threads of one column: 1024 in a block, since there are few columns and many partial sums

__global__ void __launch_bounds__(kWarp * kAddRows) add_partials(const float *partial, size_t chunks, size_t stride, size_t columns, float *grad) {
  __shared__ float of_row[kAddRows][kWarp];
  const uint64_t column = static_cast<uint64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float total = 0.0f;
  if (column < columns)
    for (size_t chunk = threadIdx.y; chunk < chunks; chunk += kAddRows) total = sum(total, partial[chunk * stride + column]);
  of_row[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
#pragma unroll
  for (unsigned row = 1; row < kAddRows; ++row) total = sum(total, of_row[row][threadIdx.x]);
  grad[column] = sum(grad[column], total);
}

// held(group, floats) with both as constants: warps a row, and the floats of it that a thread holds, of a block's rows at most kMost.
// fits false: the row is too long.
template <unsigned kMost, class F>
ckpt_status with_held(size_t channels, const F &held, bool *fits) {
  const size_t of_lane = (channels + kWarp - 1) / kWarp;
  *fits = true;
  using std::integral_constant;
  using One = integral_constant<unsigned, 1>;
  using Four = integral_constant<unsigned, kWarps>;
  if (of_lane <= 16) return held(One{}, integral_constant<unsigned, 16>{});
  if (of_lane <= 24) return held(One{}, integral_constant<unsigned, 24>{});
  if (of_lane <= 32) return held(One{}, integral_constant<unsigned, 32>{});
  if (of_lane <= 4 * 16) return held(Four{}, integral_constant<unsigned, 16>{});
  if (of_lane <= 4 * 24) return held(Four{}, integral_constant<unsigned, 24>{});
  if constexpr (kMost >= 32)
    if (of_lane <= 4 * 32) return held(Four{}, integral_constant<unsigned, 32>{});
  *fits = false;
  return CKPT_OK;
}

constexpr unsigned blocks_of_rows(size_t rows, unsigned rows_of_block) {
  return static_cast<unsigned>(std::min<size_t>((rows + rows_of_block - 1) / rows_of_block, size_t{1} << 30));
}

}  // namespace

ckpt_status add_partial_sums(Context &context, const float *partial, size_t chunks, size_t stride, size_t columns, float *grad) {
  return launch(context, "add_partial_sums", add_partials, static_cast<unsigned>((columns + kWarp - 1) / kWarp), dim3(kWarp, kAddRows), 0,
                partial, chunks, stride, columns, grad);
}

ckpt_status column_sums(Context &context, const void *in, size_t rows, size_t columns, float *sums) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const ColumnCut cut = column_cut(rows, columns, kLanes<T>);
    Parts parts;
    const size_t at = parts.add<float>(cut.chunks * columns);
    CKPT_CUDA(parts.take(context));
    float *const partial = parts.at<float>(at);
    const auto *const from = static_cast<const T *>(in);
    const bool aligned = aligned16(from) && columns % kLanes<T> == 0;
    CKPT_CUDA(launch(context, "column_sums", sum_columns<T>, dim3(cut.across, cut.chunks), dim3(kWarp, kColumnRows), 0, from, rows,
                     columns, cut.rows_of_chunk, aligned, partial));
    return add_partial_sums(context, partial, cut.chunks, columns, columns, sums);
  });
}

ckpt_status layernorm_forward(Context &context, const void *in, const void *weight, const void *bias, size_t rows, size_t channels,
                              float epsilon, void *out, float *mean, float *rstd) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    Forward<T> f = {static_cast<const T *>(in), static_cast<const T *>(weight), static_cast<const T *>(bias), rows, channels, epsilon,
                    1.0f / static_cast<float>(channels), false, static_cast<T *>(out), mean, rstd};
    f.aligned = channels % kLanes<T> == 0 && aligned16(f.in, f.weight, f.bias, f.out);
    bool fits = false;
    const ckpt_status status = with_held<32>(channels, [&](auto group, auto floats) -> ckpt_status {
      return launch(context, "layernorm_forward", forward_held<T, group, floats / kLanes<T>>, blocks_of_rows(rows, kWarps / group), kBlock, 0, f);
    }, &fits);
    return fits ? status : launch(context, "layernorm_forward", forward_long<T>, blocks_of_rows(rows, 1), kBlock, 0, f);
  });
}

ckpt_status layernorm_backward(Context &context, const void *in, const float *mean, const float *rstd, const void *weight,
                               const void *out_grad, const void *residual_grad, size_t rows, size_t channels, void *in_grad,
                               uint32_t accumulate, float *weight_grad, float *bias_grad) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    Backward<T> b = {static_cast<const T *>(in), static_cast<const T *>(weight), static_cast<const T *>(out_grad),
                     static_cast<const T *>(residual_grad), mean, rstd, rows, channels, 1.0f / static_cast<float>(channels), false,
                     accumulate != 0, static_cast<T *>(in_grad), nullptr, 0};
    b.aligned = channels % kLanes<T> == 0 && aligned16(b.in, b.weight, b.out_grad, b.residual_grad, b.in_grad);
    const bool sums = weight_grad != nullptr || bias_grad != nullptr;
    bool fits = false;
    size_t chunks = 0;
    const auto reserve = [&](size_t count) -> ckpt_status {
      chunks = count;
      if (!sums) return CKPT_OK;
      Parts parts;
      const size_t at = parts.add<float>(chunks * 2 * channels);
      CKPT_CUDA(parts.take(context));
      b.partial = parts.at<float>(at);
      return CKPT_OK;
    };
    const ckpt_status status = with_held<24>(channels, [&](auto group, auto floats) -> ckpt_status {
      // 16 rows or more to a block, so that partial sums are little beside the arrays; 1024 blocks at most.
      b.rows_of_block = std::max<size_t>(16, (rows + 1023) / 1024);
      CKPT_CUDA(reserve((rows + b.rows_of_block - 1) / b.rows_of_block));
      return launch(context, "layernorm_backward", backward_held<T, group, floats / kLanes<T>>, static_cast<unsigned>(chunks), kBlock, 0, b);
    }, &fits);
    CKPT_CUDA(status);
    if (!fits) {
      if (sums) {  // first: in_grad may be out_grad
        const ColumnCut cut = column_cut(rows, channels, kLanes<T>);
        b.rows_of_block = cut.rows_of_chunk;
        CKPT_CUDA(reserve(cut.chunks));
        CKPT_CUDA(launch(context, "layernorm_backward", columns_of_norm<T>, dim3(cut.across, cut.chunks), dim3(kWarp, kColumnRows), 0, b));
      }
      CKPT_CUDA(launch(context, "layernorm_backward", backward_long<T>, blocks_of_rows(rows, 1), kBlock, 0, b));
    }
    if (weight_grad != nullptr) CKPT_CUDA(add_partial_sums(context, b.partial, chunks, 2 * channels, channels, weight_grad));
    if (bias_grad != nullptr) CKPT_CUDA(add_partial_sums(context, b.partial + channels, chunks, 2 * channels, channels, bias_grad));
    return CKPT_OK;
  });
}

}  // namespace ckpt::ops::cuda
