// GELU in its tanh form, with the bias of the product before it:
//
//   gelu(x) = x s,  s = 1 / (1 + exp(-u)),  u = x (a + b x^2)            0.5 (1 + tanh(u / 2)) = s
//   gelu'(x) = s + x s (1 - s) u',  u' = a + 3 b x^2                      1 - s = exp(-u) s is free of cancellation
//
// 16-bit elements use the hardware's exponential and reciprocal, whose error (2^-21) is far below theirs: with the accurate ones the
// arithmetic, not memory, would be the limit. float32, with half as many elements to the byte, takes the accurate ones.
#include "ops/cuda/columns.h"

namespace ckpt::ops::cuda {
namespace {

constexpr float kA = 1.5957691216057308f;    // 2 sqrt(2 / pi)
constexpr float kB = 0.0713548162726002527f;  // a * 0.044715
// Where gelu is 0 or x, and its slope 0 or 1, within a float32's smallest: beyond, powers of x are no float32 any more, and exponentials
// do not make up for them. NaN is on neither side.
constexpr float kEnd = 16.0f;
CKPT_ON_DEVICE float above_the_end(float x) { return x < -kEnd ? -kEnd : x; }

template <class T>
struct Sigmoid {
  float e, s;  // exp(-u), 1 / (1 + exp(-u))
  explicit CKPT_ON_DEVICE Sigmoid(float x) {
    // Above 88 the exponential is no float32 any more, and gelu(x) is 0 within one.
    const float minus_u = fminf(product(-x, fused(product(x, x), kB, kA)), 88.0f);
    if constexpr (sizeof(T) == sizeof(float)) {
      e = expf(minus_u);
      s = 1.0f / sum(e, 1.0f);
    } else {
      e = __expf(minus_u);
      s = __fdividef(1.0f, sum(e, 1.0f));
    }
  }
};

template <class T>
CKPT_ON_DEVICE float gelu(float x) {
  x = above_the_end(x);
  return product(x, Sigmoid<T>(x).s);
}

template <class T>
CKPT_ON_DEVICE float gelu_slope(float x) {
  x = above_the_end(x);
  x = x > kEnd ? kEnd : x;
  const Sigmoid<T> sigmoid(x);
  const float inner = product(product(x, sigmoid.s), product(sigmoid.e, sigmoid.s));
  return fused(inner, fused(product(x, x), 3.0f * kB, kA), sigmoid.s);
}

template <class T, bool kBias>
__global__ void __launch_bounds__(kElementBlock) forward(const T *in, const T *bias, size_t count, size_t columns, size_t vectors, T *out) {
  constexpr unsigned kN = kLanes<T>;
  each<kN>(count, vectors, [&](uint64_t at) {
    Floats<kN> x = load_vector(in + at);
    if (kBias) {
      const Floats<kN> b = load_vector(bias + at % columns);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) x.at[k] = sum(x.at[k], b.at[k]);
    }
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) x.at[k] = gelu<T>(x.at[k]);
    store_vector(out + at, x);
  }, [&](uint64_t at) {
    const float x = as_float(in[at]);
    out[at] = rounded<T>(gelu<T>(kBias ? sum(x, as_float(bias[at % columns])) : x));
  });
}

template <class T>
struct Backward {
  const T *in, *bias, *out_grad;  // bias NULL: none
  size_t rows, columns;
  T *in_grad;
  bool accumulate, aligned;
};

// in_grad's element, before rounding; `*own` is what goes into the bias' gradient.
template <class T>
CKPT_ON_DEVICE float gradient(float x, float grad, float before, bool accumulate, float *own) {
  *own = product(gelu_slope<T>(x), grad);
  return accumulate ? sum(before, *own) : *own;
}

// A thread goes down a chunk of rows in one vector of columns, so that the bias is loaded once and its gradient is summed in registers.
// What is added up has not been rounded to T.
template <class T>
__global__ void __launch_bounds__(kColumnBlock) backward(Backward<T> b, size_t rows_of_chunk, float *partial) {
  constexpr unsigned kN = kLanes<T>;
  const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * kWarp + threadIdx.x) * kN;
  const size_t begin = blockIdx.y * rows_of_chunk, end = begin + rows_of_chunk < b.rows ? begin + rows_of_chunk : b.rows;
  Floats<kN> sums = {}, bias = {};
  if (b.bias != nullptr) bias = load_row(b.bias, at, b.columns, b.aligned);
  for (size_t row = begin + threadIdx.y; row < end; row += kColumnRows) {
    const size_t first = row * b.columns;
    const Floats<kN> x = load_row(b.in + first, at, b.columns, b.aligned), grad = load_row(b.out_grad + first, at, b.columns, b.aligned);
    Floats<kN> before = {}, out;
    if (b.accumulate) before = load_row(b.in_grad + first, at, b.columns, b.aligned);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) {
      float own = 0.0f;
      out.at[k] = gradient<T>(sum(x.at[k], bias.at[k]), grad.at[k], before.at[k], b.accumulate, &own);
      sums.at[k] = sum(sums.at[k], own);
    }
    store_row(b.in_grad + first, at, b.columns, b.aligned, out);
  }
  if (partial != nullptr) store_columns(sums, at, b.columns, partial + blockIdx.y * b.columns);
}

// Without a bias rows do not matter.
template <class T>
__global__ void __launch_bounds__(kElementBlock) backward_flat(Backward<T> b, size_t vectors) {
  constexpr unsigned kN = kLanes<T>;
  float own = 0.0f;
  each<kN>(b.rows * b.columns, vectors, [&](uint64_t at) {
    const Floats<kN> x = load_vector(b.in + at), grad = load_vector(b.out_grad + at);
    Floats<kN> before = {}, out;
    if (b.accumulate) before = load_vector(b.in_grad + at);
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) out.at[k] = gradient<T>(x.at[k], grad.at[k], before.at[k], b.accumulate, &own);
    store_vector(b.in_grad + at, out);
  }, [&](uint64_t at) {
    const float before = b.accumulate ? as_float(b.in_grad[at]) : 0.0f;
    b.in_grad[at] = rounded<T>(gradient<T>(as_float(b.in[at]), as_float(b.out_grad[at]), before, b.accumulate, &own));
  });
}

}  // namespace

ckpt_status gelu_forward(Context &context, const void *in, const void *bias, size_t rows, size_t columns, void *out) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const auto *const from = static_cast<const T *>(in), *const b = static_cast<const T *>(bias);
    auto *const to = static_cast<T *>(out);
    const size_t count = rows * columns;
    const Cut cut = b == nullptr || columns % kLanes<T> == 0 ? cut_of<kLanes<T>>(context, count, from, b, to) : cut_singly(context, count);
    return launch(context, "gelu_forward", b != nullptr ? forward<T, true> : forward<T, false>, cut.blocks, kElementBlock, 0, from, b, count,
                  columns, cut.vectors, to);
  });
}

ckpt_status gelu_backward(Context &context, const void *in, const void *bias, const void *out_grad, size_t rows, size_t columns,
                          void *in_grad, uint32_t accumulate, float *bias_grad) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    Backward<T> b = {static_cast<const T *>(in), static_cast<const T *>(bias), static_cast<const T *>(out_grad), rows, columns,
                     static_cast<T *>(in_grad), accumulate != 0, false};
    if (bias == nullptr && bias_grad == nullptr) {
      const Cut cut = cut_of<kLanes<T>>(context, rows * columns, b.in, b.out_grad, b.in_grad);
      return launch(context, "gelu_backward", backward_flat<T>, cut.blocks, kElementBlock, 0, b, cut.vectors);
    }
    b.aligned = columns % kLanes<T> == 0 && aligned16(b.in, b.bias, b.out_grad, b.in_grad);
    const ColumnCut cut = column_cut(rows, columns, kLanes<T>);
    float *partial = nullptr;
    if (bias_grad != nullptr) {
      Parts parts;
      const size_t at = parts.add<float>(cut.chunks * columns);
      CKPT_CUDA(parts.take(context));
      partial = parts.at<float>(at);
    }
    CKPT_CUDA(launch(context, "gelu_backward", backward<T>, dim3(cut.across, cut.chunks), dim3(kWarp, kColumnRows), 0, b, cut.rows_of_chunk, partial));
    return bias_grad == nullptr ? CKPT_OK : add_partial_sums(context, partial, cut.chunks, columns, columns, bias_grad);
  });
}

}  // namespace ckpt::ops::cuda
