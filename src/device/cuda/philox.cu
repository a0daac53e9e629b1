// Fills from a snapshot: element e of a fill is word offset + first + e, whatever the grid and the address. A thread makes the
// elements of one 16-byte store from the blocks that they lie in: as many blocks as fours of elements where words and addresses
// agree modulo 4, one more otherwise. Elements before the first and behind the last 16-byte boundary are stored one by one.
#include "device/cuda/kernels.h"
#include "device/cuda/launch.h"
#include "rng/normal.h"
#include "rng/philox.h"

#include <algorithm>
#include <cmath>

namespace ckpt::cuda {
namespace {

using rng::Block;
using rng::kWordsPerBlock;

constexpr unsigned kBlock = 256;  // 8 warps: no barriers and no shared memory, so any size fills a multiprocessor
constexpr size_t kMostBlocks = size_t{1} << 20;

struct Start {
  uint64_t seed, subsequence, word;  // of element 0
  const uint64_t *step_word;
};

// What becomes of a block's four words: the bits of four elements.
struct Words {
  using Element = uint32_t;
  __device__ __forceinline__ Block operator()(const Block &x) const { return x; }
};

struct Uniform {
  using Element = float;
  __device__ __forceinline__ Block operator()(const Block &x) const {
    Block out;
#pragma unroll
    for (unsigned k = 0; k < kWordsPerBlock; ++k) out.word[k] = rng::OneLane::bits(rng::uniform_of(x.word[k]));
    return out;
  }
};

struct Normal {
  using Element = float;
  float mean, stddev;
  __device__ __forceinline__ Block operator()(const Block &x) const {
    float z[kWordsPerBlock];
    rng::box_muller<rng::OneLane>(x.word[0], x.word[1], &z[0], &z[1]);
    rng::box_muller<rng::OneLane>(x.word[2], x.word[3], &z[2], &z[3]);
    Block out;
#pragma unroll
    for (unsigned k = 0; k < kWordsPerBlock; ++k) out.word[k] = rng::OneLane::bits(rng::OneLane::fma(stddev, z[k], mean));
    return out;
  }
};

struct Below {
  using Element = uint8_t;
  uint32_t threshold;
  __device__ __forceinline__ Block operator()(const Block &x) const {
    Block out;
#pragma unroll
    for (unsigned k = 0; k < kWordsPerBlock; ++k) out.word[k] = x.word[k] < threshold ? 1 : 0;
    return out;
  }
};

template <class T>
constexpr unsigned kLanes = 16 / sizeof(T);

// The four elements from lane kLane of `now` on.
template <unsigned kLane>
__device__ __forceinline__ uint4 four_from(const Block &now, const Block &next) {
  const uint32_t *const a = now.word, *const b = next.word;
  if constexpr (kLane == 0) return make_uint4(a[0], a[1], a[2], a[3]);
  if constexpr (kLane == 1) return make_uint4(a[1], a[2], a[3], b[0]);
  if constexpr (kLane == 2) return make_uint4(a[2], a[3], b[0], b[1]);
  return make_uint4(a[3], b[0], b[1], b[2]);
}

__device__ __forceinline__ uint32_t bytes_of(uint4 x) { return x.x | x.y << 8 | x.z << 16 | x.w << 24; }

// The elements from word 4 block + kLane on, 16 bytes of them.
template <unsigned kLane, class Make>
__device__ __forceinline__ void store_from(const Start &start, uint64_t block, const Make &make, uint4 *to) {
  constexpr unsigned kFours = kLanes<typename Make::Element> / kWordsPerBlock;
  uint4 fours[kFours];
  Block now = make(rng::block_at(start.seed, start.subsequence, block));
#pragma unroll
  for (unsigned k = 0; k < kFours; ++k) {
    Block next = now;
    if (kLane != 0 || k + 1 < kFours) next = make(rng::block_at(start.seed, start.subsequence, block + k + 1));
    fours[k] = four_from<kLane>(now, next);
    now = next;
  }
  if constexpr (kFours == 1) {
    *to = fours[0];
  } else {
    static_assert(kFours == 4, "elements are of 1 or 4 bytes");
    *to = make_uint4(bytes_of(fours[0]), bytes_of(fours[1]), bytes_of(fours[2]), bytes_of(fours[3]));
  }
}

template <class Make>
__device__ void store_one(const Start &start, uint64_t element, const Make &make, typename Make::Element *out) {
  const uint64_t word = start.word + element;
  const Block four = make(rng::block_at(start.seed, start.subsequence, word / kWordsPerBlock));
  const unsigned lane = static_cast<unsigned>(word % kWordsPerBlock);
  const uint32_t bits = lane == 0 ? four.word[0] : lane == 1 ? four.word[1] : lane == 2 ? four.word[2] : four.word[3];
  memcpy(out + element, &bits, sizeof out[0]);  // of a byte the low one: little-endian, as the CPU's
}

// `head` elements lie before the first 16-byte boundary of out, `vectors` 16-byte vectors follow, at `whole` (as a parameter, for the compiler
// does not believe the alignment of a pointer that it sees computed, and stores four words). kLane: word of element `head` modulo 4.
template <unsigned kLane, class Make>
__global__ void __launch_bounds__(kBlock)
    fill(Start start, Make make, uint64_t count, unsigned head, uint64_t vectors, uint4 *whole, typename Make::Element *out) {
  constexpr unsigned kEach = kLanes<typename Make::Element>;
  if (start.step_word != nullptr) start.subsequence += *start.step_word;
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * kBlock;
  for (uint64_t k = thread; k < vectors; k += threads) {
    store_from<kLane>(start, (start.word + head + k * kEach) / kWordsPerBlock, make, whole + k);
  }
  const uint64_t behind = head + vectors * kEach;
  if (thread < head) store_one(start, thread, make, out);
  if (thread < count - behind) store_one(start, behind + thread, make, out);
}

template <class Make>
cudaError_t fill_launch(cudaStream_t stream, const Start &start, const Make &make, size_t count, void *to) {
  using T = typename Make::Element;
  auto *const out = static_cast<T *>(to);
  const size_t past = reinterpret_cast<uintptr_t>(out) % 16 / sizeof(T);
  const size_t head = std::min(count, past == 0 ? 0 : kLanes<T> - past);
  const size_t vectors = (count - head) / kLanes<T>;
  const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, std::max<size_t>(1, (vectors + kBlock - 1) / kBlock)));
  void (*const kernels[])(Start, Make, uint64_t, unsigned, uint64_t, uint4 *, T *) = {fill<0, Make>, fill<1, Make>, fill<2, Make>, fill<3, Make>};
  return launch(kernels[(start.word + head) % kWordsPerBlock], blocks, kBlock, 0, stream, start, make, count, static_cast<unsigned>(head), vectors,
                reinterpret_cast<uint4 *>(vectors > 0 ? out + head : nullptr), out);
}

}  // namespace

cudaError_t philox_launch(cudaStream_t stream, device::Fill fill, const ckpt_philox &philox, uint64_t first, size_t count, double a,
                          double b, void *out) {
  const Start start = {philox.seed, philox.subsequence, philox.offset + first, philox.step_word};
  switch (fill) {
    case device::Fill::u32: return fill_launch(stream, start, Words{}, count, out);
    case device::Fill::uniform: return fill_launch(stream, start, Uniform{}, count, out);
    case device::Fill::normal: return fill_launch(stream, start, Normal{static_cast<float>(a), static_cast<float>(b)}, count, out);
    case device::Fill::bernoulli: break;
    default: return cudaErrorInvalidValue;
  }
  const auto threshold = static_cast<uint64_t>(std::round(a * 0x1p32));
  if (threshold == 0 || threshold > UINT32_MAX) return cudaMemsetAsync(out, threshold != 0, count, stream);
  return fill_launch(stream, start, Below{static_cast<uint32_t>(threshold)}, count, out);
}

}  // namespace ckpt::cuda
