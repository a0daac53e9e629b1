// Cross-entropy. Forward: lse = log sum exp(logits) of each row in one pass (a running maximum, and the sum of exponentials rescaled to it;
// Milakov, Gimelshein 2018, arXiv 1805.02867), and the row's loss, lse - logits[target]. Backward: (exp(logits - lse) - [target]) * scale. The scale
// and the sums are words of the context.
//
// A vocabulary is seldom a multiple of 8, so rows begin anywhere in a vector. A row is cut at the vectors of the whole array: elements
// before its first whole vector and behind its last one go one by one. This is the shape's matter; an array that does not begin at 16
// bytes is cut at the same places, and its vectors are read element by element.
#include "ops/cuda/element.h"
#include "ops/cuda/table.h"

#include <cfloat>

namespace ckpt::ops::cuda {
namespace {

constexpr unsigned kBlock = 256;       // a block a row: 50,304 16-bit logits are 25 vectors a thread
constexpr unsigned kWarps = kBlock / kWarp;
constexpr unsigned kSumBlock = 1024;   // one block alone

// 16-bit logits take the hardware's exponential: its error is 2^-21, theirs 2^-9.
template <class T>
CKPT_ON_DEVICE float exponential(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return expf(x);
  } else {
    return __expf(x);
  }
}

// Where a row lies in the array: elements begin ... end, of which vectors * lanes ... are whole vectors.
struct Row {
  uint64_t begin, end, whole_begin, whole_end;  // elements
  template <unsigned N>
  static CKPT_ON_DEVICE Row at(uint64_t row, uint64_t columns) {
    Row r = {row * columns, row * columns + columns, 0, 0};
    r.whole_begin = (r.begin + N - 1) / N * N;
    r.whole_end = r.end / N * N;
    if (r.whole_begin >= r.whole_end) r.whole_begin = r.whole_end = r.end;  // none: all are one by one
    return r;
  }
};

template <class T>
CKPT_ON_DEVICE Floats<kLanes<T>> load_any(const T *from, bool aligned) {
  if (aligned) return load_vector(from);
  Floats<kLanes<T>> out;
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) out.at[k] = as_float(from[k]);
  return out;
}
template <class T>
CKPT_ON_DEVICE void store_any(T *to, bool aligned, const Floats<kLanes<T>> &values) {
  if (aligned) return store_vector(to, values);
#pragma unroll
  for (unsigned k = 0; k < kLanes<T>; ++k) to[k] = rounded<T>(values.at[k]);
}

// single(element) for those outside whole vectors, vector(first element) for each whole vector, by the threads of a block.
template <unsigned N, class Single, class Vector>
CKPT_ON_DEVICE void over_row(const Row &row, const Single &single, const Vector &vector) {
  for (uint64_t at = row.begin + threadIdx.x; at < row.whole_begin; at += kBlock) single(at);
#pragma unroll 4
  for (uint64_t at = row.whole_begin + threadIdx.x * N; at < row.whole_end; at += kBlock * N) vector(at);
  for (uint64_t at = row.whole_end + threadIdx.x; at < row.end; at += kBlock) single(at);
}

// A maximum and the sum of exp(x - maximum).
template <class T>
struct Running {
  float max = -FLT_MAX, total = 0.0f;

  template <unsigned N>
  CKPT_ON_DEVICE void add(const Floats<N> &x) {
    float most = x.at[0];
#pragma unroll
    for (unsigned k = 1; k < N; ++k) most = fmaxf(most, x.at[k]);
    if (most > max) {
      total = product(total, exponential<T>(max - most));
      max = most;
    }
#pragma unroll
    for (unsigned k = 0; k < N; ++k) total = sum(total, exponential<T>(x.at[k] - max));
  }
  CKPT_ON_DEVICE void join(const Running &other) {
    const float most = fmaxf(max, other.max);
    total = sum(product(total, exponential<T>(max - most)), product(other.total, exponential<T>(other.max - most)));
    max = most;
  }
  CKPT_ON_DEVICE Running of_lane(int distance) const {
    return {__shfl_down_sync(kWholeWarp, max, distance), __shfl_down_sync(kWholeWarp, total, distance)};
  }
};

template <class T>
struct Rows {
  const T *logits;
  const int32_t *targets;
  size_t rows, vocabulary;
  int32_t ignored;
  bool aligned;
};

CKPT_ON_DEVICE bool in_range(int32_t target, size_t vocabulary) { return target >= 0 && static_cast<size_t>(target) < vocabulary; }

template <class T>
__global__ void __launch_bounds__(kBlock) log_sums(Rows<T> r, float *lse, double *losses) {
  __shared__ float maxima[kWarps], totals[kWarps];
  for (uint64_t row = blockIdx.x; row < r.rows; row += gridDim.x) {
    Running<T> running;
    const Row place = Row::at<kLanes<T>>(row, r.vocabulary);
    over_row<kLanes<T>>(place, [&](uint64_t at) { running.add(Floats<1>{{as_float(r.logits[at])}}); },
                        [&](uint64_t at) { running.add(load_any(r.logits + at, r.aligned)); });
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) running.join(running.of_lane(distance));
    if (threadIdx.x % kWarp == 0) maxima[threadIdx.x / kWarp] = running.max, totals[threadIdx.x / kWarp] = running.total;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned warp = 1; warp < kWarps; ++warp) running.join({maxima[warp], totals[warp]});
      const int32_t target = r.targets[row];
      const bool ignored = target == r.ignored, there = in_range(target, r.vocabulary);
      const float log_sum = ignored || there ? sum(running.max, logf(running.total)) : NAN;
      lse[row] = log_sum;
      losses[row] = ignored ? 0.0 : static_cast<double>(log_sum) - (there ? static_cast<double>(as_float(r.logits[place.begin + target])) : 0.0);
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kSumBlock) add_losses(const double *losses, const int32_t *targets, size_t rows, int32_t ignored, Words *words) {
  __shared__ double sums[kSumBlock / kWarp];
  __shared__ uint64_t counts[kSumBlock / kWarp];
  double total = 0.0;
  uint64_t counted = 0;
  for (uint64_t row = threadIdx.x; row < rows; row += kSumBlock) {
    total += losses[row];
    counted += targets[row] != ignored ? 1 : 0;
  }
  total = block_sum<kSumBlock>(total, sums);
  counted = block_sum<kSumBlock>(counted, counts);
  if (threadIdx.x != 0) return;
  words->loss_sum += total;
  words->loss_rows += counted;
}

__global__ void clear_loss(Words *words) {
  words->loss_sum = 0.0;
  words->loss_rows = 0;
}

__global__ void mean_loss(const Words *words, float *out) {
  *out = words->loss_rows == 0 ? 0.0f : static_cast<float>(words->loss_sum / static_cast<double>(words->loss_rows));
}

__global__ void __launch_bounds__(kSumBlock)
    scale_of_rows(const int32_t *targets, size_t rows, int32_t ignored, const float *device_grad, float host_grad, Words *words) {
  __shared__ uint64_t counts[kSumBlock / kWarp];
  uint64_t counted = 0;
  for (uint64_t row = threadIdx.x; row < rows; row += kSumBlock) counted += targets[row] != ignored ? 1 : 0;
  counted = block_sum<kSumBlock>(counted, counts);
  if (threadIdx.x != 0) return;
  const float grad = device_grad != nullptr ? *device_grad : host_grad;
  words->loss_scale = counted == 0 ? 0.0f : grad / static_cast<float>(counted);
}

template <class T>
__global__ void __launch_bounds__(kBlock) gradients(Rows<T> r, const float *lse, const Words *words, T *out) {
  constexpr unsigned kN = kLanes<T>;
  const float scale = words->loss_scale;
  for (uint64_t row = blockIdx.x; row < r.rows; row += gridDim.x) {
    const Row place = Row::at<kN>(row, r.vocabulary);
    const int32_t target = r.targets[row];
    const bool ignored = target == r.ignored, there = in_range(target, r.vocabulary);
    const uint64_t one = there ? place.begin + target : UINT64_MAX;
    const float shift = lse[row], outside = ignored ? 0.0f : NAN;
    const auto gradient = [&](float x, uint64_t at) {
      if (ignored || !there) return outside;
      const float e = exponential<T>(x - shift);
      return product(at == one ? sum(e, -1.0f) : e, scale);
    };
    over_row<kN>(place, [&](uint64_t at) { out[at] = rounded<T>(gradient(as_float(r.logits[at]), at)); },
                 [&](uint64_t at) {
                   Floats<kN> x = load_any(r.logits + at, r.aligned);
#pragma unroll
                   for (unsigned k = 0; k < kN; ++k) x.at[k] = gradient(x.at[k], at + k);
                   store_any(out + at, r.aligned, x);
                 });
  }
}

unsigned blocks_of(size_t rows) { return static_cast<unsigned>(rows < (size_t{1} << 30) ? rows : size_t{1} << 30); }

}  // namespace

ckpt_status loss_begin(Context &context, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index) {
  CKPT_CUDA(check_indices(context, targets, rows, vocabulary, &ignore_index));
  return launch(context, "loss_begin", clear_loss, 1, 1, 0, context.words);
}

ckpt_status loss_add(Context &context, const void *logits, const int32_t *targets, size_t rows, size_t vocabulary,
                     int32_t ignore_index, float *lse) {
  Parts parts;
  const size_t at = parts.add<double>(rows);
  CKPT_CUDA(parts.take(context));
  double *const losses = parts.at<double>(at);
  CKPT_CUDA(with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const Rows<T> r = {static_cast<const T *>(logits), targets, rows, vocabulary, ignore_index, aligned16(logits)};
    return launch(context, "loss_add", log_sums<T>, blocks_of(rows), kBlock, 0, r, lse, losses);
  }));
  return launch(context, "loss_add", add_losses, 1, kSumBlock, 0, losses, targets, rows, ignore_index, context.words);
}

ckpt_status loss_end(Context &context, float *out_loss) { return launch(context, "loss_end", mean_loss, 1, 1, 0, context.words, out_loss); }

ckpt_status loss_scale(Context &context, const int32_t *targets, size_t rows, size_t vocabulary, int32_t ignore_index,
                       const float *device_loss_grad, float host_loss_grad) {
  CKPT_CUDA(check_indices(context, targets, rows, vocabulary, &ignore_index));
  return launch(context, "loss_scale", scale_of_rows, 1, kSumBlock, 0, targets, rows, ignore_index, device_loss_grad, host_loss_grad,
                context.words);
}

ckpt_status loss_gradient(Context &context, const void *logits, const int32_t *targets, const float *lse, size_t rows,
                          size_t vocabulary, int32_t ignore_index, void *logits_grad) {
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    const Rows<T> r = {static_cast<const T *>(logits), targets, rows, vocabulary, ignore_index, aligned16(logits, logits_grad)};
    return launch(context, "loss_gradient", gradients<T>, blocks_of(rows), kBlock, 0, r, lse, context.words, static_cast<T *>(logits_grad));
  });
}

}  // namespace ckpt::ops::cuda
