// Tables of tokens and positions: out[b,t,:] = token_table[tokens[b,t],:] + position_table[t,:].
//
// Backward adds the rows of out_grad that share a token, in the order of the rows: they are sorted by token (count, prefix sums, place,
// and each place by the number of smaller rows of its token, since the order in which threads place them is not fixed), cut into
// segments of sorted rows, and a block adds up each token's run within a segment. Runs that go over a segment's end leave partial
// sums, which the run's first segment adds up. So a token that is everywhere is no longer chain than its rows / kSegment, and nothing
// depends on which thread came first.
#include "ops/cuda/columns.h"

#include <algorithm>

namespace ckpt::ops::cuda {
namespace {

constexpr unsigned kBlock = 128;       // a row of 768 16-bit channels is 96 vectors
constexpr unsigned kScanBlock = 1024;  // one block alone
constexpr unsigned kSegment = 32;      // sorted rows of a block: 256 blocks at 8192 rows

CKPT_ON_DEVICE bool in_range(int32_t token, size_t vocabulary) { return token >= 0 && static_cast<size_t>(token) < vocabulary; }

template <class T>
struct Forward {
  const int32_t *tokens;
  const T *token_table, *position_table;  // position_table NULL: none
  size_t rows, sequence, channels, vocabulary;
  bool aligned;
  T *out;
};

template <class T>
__global__ void __launch_bounds__(kBlock) forward(Forward<T> f) {
  constexpr unsigned kN = kLanes<T>;
  for (size_t row = blockIdx.x; row < f.rows; row += gridDim.x) {
    const int32_t token = f.tokens[row];
    const bool there = in_range(token, f.vocabulary);
    const T *const from = f.token_table + (there ? static_cast<size_t>(token) : 0) * f.channels;
    for (uint64_t at = threadIdx.x * kN; at < f.channels; at += kBlock * kN) {
      Floats<kN> x = load_row(from, at, f.channels, f.aligned);
      if (f.position_table != nullptr) {
        const Floats<kN> position = load_row(f.position_table + row % f.sequence * f.channels, at, f.channels, f.aligned);
#pragma unroll
        for (unsigned k = 0; k < kN; ++k) x.at[k] = sum(x.at[k], position.at[k]);
      }
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) x.at[k] = there ? x.at[k] : NAN;
      store_row(f.out + row * f.channels, at, f.channels, f.aligned, x);
    }
  }
}

// ---- sorting rows by token ----

__global__ void __launch_bounds__(kElementBlock) count_tokens(const int32_t *tokens, size_t rows, size_t vocabulary, uint32_t *counts) {
  for (uint64_t row = thread_of_grid(); row < rows; row += threads_of_grid())
    if (in_range(tokens[row], vocabulary)) atomicAdd(&counts[tokens[row]], 1u);
}

// begins[t] = the sum of counts[0 ... t - 1], for t = 0 ... vocabulary.
__global__ void __launch_bounds__(kScanBlock) prefix_sums(const uint32_t *counts, size_t vocabulary, uint32_t *begins) {
  __shared__ uint32_t of_warp[kScanBlock / kWarp];
  const size_t each = (vocabulary + kScanBlock - 1) / kScanBlock;
  const size_t first = threadIdx.x * each, end = first + each < vocabulary ? first + each : vocabulary;
  uint32_t mine = 0;
  for (size_t t = first; t < end; ++t) mine += counts[t];
  uint32_t before = mine;  // of this warp, this thread included
  const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const uint32_t other = __shfl_up_sync(kWholeWarp, before, step);
    if (lane >= step) before += other;
  }
  if (lane == kWarp - 1) of_warp[threadIdx.x / kWarp] = before;
  __syncthreads();
  before -= mine;
  for (unsigned warp = 0; warp < threadIdx.x / kWarp; ++warp) before += of_warp[warp];
  for (size_t t = first; t < end; ++t) {
    begins[t] = before;
    before += counts[t];
  }
  if (threadIdx.x == kScanBlock - 1) begins[vocabulary] = before;  // threads without tokens have the sum of all
}

// Some row of the token into each of its places. Counts go down to 0.
__global__ void __launch_bounds__(kElementBlock)
    place_rows(const int32_t *tokens, size_t rows, size_t vocabulary, const uint32_t *begins, uint32_t *counts, uint32_t *placed) {
  for (uint64_t row = thread_of_grid(); row < rows; row += threads_of_grid())
    if (const int32_t token = tokens[row]; in_range(token, vocabulary))
      placed[begins[token] + atomicAdd(&counts[token], UINT32_MAX) - 1] = static_cast<uint32_t>(row);
}

// Each row to the place that its rank among its token's rows gives.
__global__ void __launch_bounds__(kElementBlock)
    order_rows(const int32_t *tokens, size_t vocabulary, const uint32_t *begins, const uint32_t *placed, uint32_t *ordered) {
  const uint32_t total = begins[vocabulary];
  for (uint64_t slot = thread_of_grid(); slot < total; slot += threads_of_grid()) {
    const uint32_t row = placed[slot];
    const uint32_t begin = begins[tokens[row]], end = begins[tokens[row] + 1];
    uint32_t rank = 0;
    for (uint32_t k = begin; k < end; ++k) rank += placed[k] < row ? 1 : 0;
    ordered[begin + rank] = row;
  }
}

// ---- sums ----

template <class T>
struct Backward {
  const int32_t *tokens;
  const T *out_grad;
  const uint32_t *begins, *ordered;
  size_t rows, sequence, channels, vocabulary;
  bool aligned, aligned_sums;  // out_grad; float32 arrays
  float *partial;              // [segments][2][channels]: of the run that a segment goes on with, of the one that goes on behind it
  float *token_grad, *position_grad;
};

template <unsigned N>
CKPT_ON_DEVICE Floats<N> load_sums(const float *row, uint64_t at, uint64_t channels, bool aligned) {
  if (aligned) return load_floats<N>(row + at);
  Floats<N> out;
#pragma unroll
  for (unsigned k = 0; k < N; ++k) out.at[k] = at + k < channels ? row[at + k] : 0.0f;
  return out;
}
template <unsigned N>
CKPT_ON_DEVICE void store_sums(float *row, uint64_t at, uint64_t channels, bool aligned, const Floats<N> &values) {
  if (aligned) return store_floats<N>(row + at, values);
#pragma unroll
  for (unsigned k = 0; k < N; ++k)
    if (at + k < channels) row[at + k] = values.at[k];
}
template <unsigned N>
CKPT_ON_DEVICE void add_to(Floats<N> *total, const Floats<N> &more) {
#pragma unroll
  for (unsigned k = 0; k < N; ++k) total->at[k] = sum(total->at[k], more.at[k]);
}
template <unsigned N>
CKPT_ON_DEVICE void add_sums(float *row, uint64_t at, uint64_t channels, bool aligned, const Floats<N> &values) {
  Floats<N> total = load_sums<N>(row, at, channels, aligned);
  add_to(&total, values);
  store_sums<N>(row, at, channels, aligned, total);
}

// A segment's runs: whole ones to their token, others to the segment's partial sums.
template <class T>
__global__ void __launch_bounds__(kBlock) sum_segments(Backward<T> b) {
  constexpr unsigned kN = kLanes<T>;
  const uint32_t total = b.begins[b.vocabulary];
  for (uint64_t segment = blockIdx.x; segment * kSegment < total; segment += gridDim.x) {
    const uint64_t begin = segment * kSegment, end = begin + kSegment < total ? begin + kSegment : total;
    for (uint64_t at = threadIdx.x * kN; at < b.channels; at += kBlock * kN) {
      Floats<kN> run = {};
      for (uint64_t slot = begin; slot < end; ++slot) {
        const size_t row = b.ordered[slot];
        const int32_t token = b.tokens[row];
        add_to(&run, load_row(b.out_grad + row * b.channels, at, b.channels, b.aligned));
        const uint64_t first = b.begins[token], last = b.begins[token + 1];
        if (slot + 1 < end && slot + 1 < last) continue;
        if (first >= begin && last <= end) {
          add_sums(b.token_grad + static_cast<size_t>(token) * b.channels, at, b.channels, b.aligned_sums, run);
        } else {
          store_sums(b.partial + (2 * segment + (first >= begin ? 1 : 0)) * b.channels, at, b.channels, b.aligned_sums, run);
        }
        run = {};
      }
    }
  }
}

// The runs that begin in a segment and end behind it.
template <class T>
__global__ void __launch_bounds__(kBlock) join_segments(Backward<T> b) {
  constexpr unsigned kN = kLanes<T>;
  const uint32_t total = b.begins[b.vocabulary];
  for (uint64_t segment = blockIdx.x; (segment + 1) * kSegment < total; segment += gridDim.x) {
    const uint64_t begin = segment * kSegment, end = begin + kSegment;
    const int32_t token = b.tokens[b.ordered[end - 1]];
    const uint64_t first = b.begins[token], last = b.begins[token + 1];
    if (first < begin || last <= end) continue;
    for (uint64_t at = threadIdx.x * kN; at < b.channels; at += kBlock * kN) {
      Floats<kN> run = load_sums<kN>(b.partial + (2 * segment + 1) * b.channels, at, b.channels, b.aligned_sums);
      for (uint64_t next = segment + 1; next * kSegment < last; ++next)
        add_to(&run, load_sums<kN>(b.partial + 2 * next * b.channels, at, b.channels, b.aligned_sums));
      add_sums(b.token_grad + static_cast<size_t>(token) * b.channels, at, b.channels, b.aligned_sums, run);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) sum_positions(Backward<T> b) {
  constexpr unsigned kN = kLanes<T>;
  for (size_t position = blockIdx.x; position < b.sequence; position += gridDim.x)
    for (uint64_t at = threadIdx.x * kN; at < b.channels; at += kBlock * kN) {
      Floats<kN> run = {};
      for (size_t row = position; row < b.rows; row += b.sequence)
        add_to(&run, load_row(b.out_grad + row * b.channels, at, b.channels, b.aligned));
      add_sums(b.position_grad + position * b.channels, at, b.channels, b.aligned_sums, run);
    }
}

unsigned at_most(size_t blocks) { return static_cast<unsigned>(std::min(blocks, size_t{1} << 30)); }

template <class T>
ckpt_status add_tokens(Context &context, Backward<T> b) {
  const size_t segments = (b.rows + kSegment - 1) / kSegment;
  Parts parts;
  const size_t counts_at = parts.add<uint32_t>(b.vocabulary), begins_at = parts.add<uint32_t>(b.vocabulary + 1);
  const size_t placed_at = parts.add<uint32_t>(b.rows), ordered_at = parts.add<uint32_t>(b.rows);
  const size_t partial_at = parts.add<float>(segments * 2 * b.channels);
  CKPT_CUDA(parts.take(context));
  auto *const counts = parts.at<uint32_t>(counts_at), *const begins = parts.at<uint32_t>(begins_at);
  auto *const placed = parts.at<uint32_t>(placed_at), *const ordered = parts.at<uint32_t>(ordered_at);
  b.partial = parts.at<float>(partial_at);
  b.begins = begins;
  b.ordered = ordered;
  const char *const name = "embedding_backward";
  const unsigned blocks = context.blocks(b.rows, kElementBlock);
  CKPT_CUDA_CALL(context, cudaMemsetAsync(counts, 0, b.vocabulary * sizeof(uint32_t), context.stream));
  CKPT_CUDA(launch(context, name, count_tokens, blocks, kElementBlock, 0, b.tokens, b.rows, b.vocabulary, counts));
  CKPT_CUDA(launch(context, name, prefix_sums, 1, kScanBlock, 0, counts, b.vocabulary, begins));
  CKPT_CUDA(launch(context, name, place_rows, blocks, kElementBlock, 0, b.tokens, b.rows, b.vocabulary, begins, counts, placed));
  CKPT_CUDA(launch(context, name, order_rows, blocks, kElementBlock, 0, b.tokens, b.vocabulary, begins, placed, ordered));
  CKPT_CUDA(launch(context, name, sum_segments<T>, at_most(segments), kBlock, 0, b));
  return segments == 1 ? CKPT_OK : launch(context, name, join_segments<T>, at_most(segments - 1), kBlock, 0, b);
}

}  // namespace

ckpt_status embedding_forward(Context &context, const int32_t *tokens, const void *token_table, const void *position_table,
                              size_t batch, size_t sequence, size_t channels, size_t vocabulary, void *out) {
  CKPT_CUDA(check_indices(context, tokens, batch * sequence, vocabulary, nullptr));
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    Forward<T> f = {tokens, static_cast<const T *>(token_table), static_cast<const T *>(position_table), batch * sequence, sequence,
                    channels, vocabulary, false, static_cast<T *>(out)};
    f.aligned = channels % kLanes<T> == 0 && aligned16(f.token_table, f.position_table, f.out);
    return launch(context, "embedding_forward", forward<T>, at_most(f.rows), kBlock, 0, f);
  });
}

ckpt_status embedding_backward(Context &context, const int32_t *tokens, const void *out_grad, size_t batch, size_t sequence,
                               size_t channels, size_t vocabulary, float *token_grad, float *position_grad) {
  const size_t rows = batch * sequence;
  if (rows > UINT32_MAX)
    return context.gpu.fail(CKPT_ERROR_UNSUPPORTED, "embedding_backward: batch * sequence is %zu, expected at most %u", rows, UINT32_MAX);
  CKPT_CUDA(check_indices(context, tokens, rows, vocabulary, nullptr));
  return with_type(context, [&](auto zero) -> ckpt_status {
    using T = decltype(zero);
    Backward<T> b = {tokens, static_cast<const T *>(out_grad), nullptr, nullptr, rows, sequence, channels, vocabulary, false, false,
                     nullptr, token_grad, position_grad};
    b.aligned = channels % kLanes<T> == 0 && aligned16(b.out_grad);
    b.aligned_sums = channels % kLanes<T> == 0 && aligned16(token_grad, position_grad);
    if (token_grad != nullptr) CKPT_CUDA(add_tokens(context, b));
    if (position_grad == nullptr) return CKPT_OK;
    return launch(context, "embedding_backward", sum_positions<T>, at_most(sequence), kBlock, 0, b);
  });
}

}  // namespace ckpt::ops::cuda
