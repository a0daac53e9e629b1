// device::cpu::hash on the device: see device/hash.h. Four threads take a chunk, two lanes each, so that a stripe of 64 bytes is one
// 16-byte load of each of them. The chunks' shares are added up by block, and the blocks' sums by one more block: integers, so the
// order does not matter.
#include "device/cuda/kernels.h"
#include "device/cuda/launch.h"
#include "device/hash.h"

#include <algorithm>

namespace ckpt::cuda {
namespace {

using namespace device::hash;

constexpr unsigned kBlock = 128;  // 32 chunks: small enough that a few MiB reach all multiprocessors
constexpr unsigned kQuad = 4, kChunks = kBlock / kQuad;
constexpr unsigned kResident = 10;  // blocks of a multiprocessor: leaves 48 registers, without which ptxas tries 32 and spills
constexpr size_t kMostBlocks = 4096;  // all that are resident on the largest device, and then some; their sums are one block's work
constexpr unsigned kAhead = 8;  // loads that are under way in a thread: a quad's stripes are 64 bytes, and memory answers after 600 ns

size_t chunks_of(size_t bytes) { return (bytes + kChunk - 1) / kChunk; }
unsigned blocks_of(size_t bytes) {
  return static_cast<unsigned>(std::min(kMostBlocks, std::max<size_t>(1, (chunks_of(bytes) + kChunks - 1) / kChunks)));
}

// Eight bytes at `at`, of which only `there` exist: the others are zero.
__device__ uint64_t word_of_bytes(const unsigned char *at, size_t there) {
  uint64_t word = 0;
  for (unsigned k = 0; k < 8; ++k)
    if (k < there) word |= static_cast<uint64_t>(at[k]) << (8 * k);
  return word;
}

struct Pair {  // a thread's two lanes
  uint64_t low, high;
};

__device__ __forceinline__ void add(Pair &lanes, ulonglong2 words) {
  lanes.low = step(lanes.low, words.x);
  lanes.high = step(lanes.high, words.y);
}

// A thread's lanes of a chunk of `bytes`. `data` is the chunk's.
template <bool kAligned>
__device__ Pair lanes_of(const unsigned char *data, size_t bytes, unsigned quad_thread) {
  Pair lanes = {first_state(2 * quad_thread), first_state(2 * quad_thread + 1)};
  const size_t stripes = bytes / kStripe;
  const unsigned char *at = data + 16 * quad_thread;
  size_t k = 0;
  if constexpr (kAligned) {
    for (; k + kAhead <= stripes; k += kAhead, at += kAhead * kStripe) {
      ulonglong2 words[kAhead];
#pragma unroll
      for (unsigned i = 0; i < kAhead; ++i) words[i] = *reinterpret_cast<const ulonglong2 *>(at + i * kStripe);
#pragma unroll
      for (unsigned i = 0; i < kAhead; ++i) add(lanes, words[i]);
    }
    for (; k < stripes; ++k, at += kStripe) add(lanes, *reinterpret_cast<const ulonglong2 *>(at));
  } else {
    for (; k < stripes; ++k, at += kStripe) {
      lanes.low = step(lanes.low, word_of_bytes(at, 8));
      lanes.high = step(lanes.high, word_of_bytes(at + 8, 8));
    }
  }
  if (const size_t rest = bytes % kStripe; rest != 0) {  // a stripe that zeros fill up
    const size_t before = 16 * quad_thread;
    lanes.low = step(lanes.low, word_of_bytes(at, rest > before ? rest - before : 0));
    lanes.high = step(lanes.high, word_of_bytes(at + 8, rest > before + 8 ? rest - before - 8 : 0));
  }
  return lanes;
}

// The sum over a block, in thread 0.
__device__ uint64_t block_total(uint64_t value) {
  __shared__ uint64_t of_warp[kBlock / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (unsigned k = 0; k < kBlock / 32; ++k) value += of_warp[k];
  return value;
}

// sums[block] = the shares of the block's chunks; a block that is alone writes the hash itself.
template <bool kAligned>
__global__ void __launch_bounds__(kBlock, kResident) hash_chunks(const unsigned char *data, size_t bytes, uint64_t *sums) {
  const size_t chunks = (bytes + kChunk - 1) / kChunk;
  const unsigned quad_thread = threadIdx.x % kQuad;
  uint64_t total = 0;
  // The same number of turns for all threads of the block: shuffles need whole warps.
  for (size_t first = static_cast<size_t>(blockIdx.x) * kChunks; first < chunks; first += static_cast<size_t>(gridDim.x) * kChunks) {
    const size_t chunk = first + threadIdx.x / kQuad;
    const bool there = chunk < chunks;
    const size_t begin = chunk * kChunk, count = !there ? 0 : bytes - begin < kChunk ? bytes - begin : kChunk;
    Pair lanes = {0, 0};
    if (there) lanes = lanes_of<kAligned>(data + begin, count, quad_thread);
    uint64_t joined = begin_join(count);
#pragma unroll
    for (int k = 0; k < static_cast<int>(kQuad); ++k) {
      joined = join(joined, __shfl_sync(0xffffffffu, lanes.low, k, kQuad));
      joined = join(joined, __shfl_sync(0xffffffffu, lanes.high, k, kQuad));
    }
    if (there && quad_thread == 0) total += share(joined, chunk);
  }
  total = block_total(total);
  if (threadIdx.x == 0) sums[blockIdx.x] = gridDim.x == 1 ? finish(begin_total(bytes) + total) : total;
}

__global__ void __launch_bounds__(kBlock) hash_sums(const uint64_t *sums, unsigned count, size_t bytes, uint64_t *out) {
  uint64_t total = 0;
  for (unsigned k = threadIdx.x; k < count; k += kBlock) total += sums[k];
  total = block_total(total);
  if (threadIdx.x == 0) *out = finish(begin_total(bytes) + total);
}

}  // namespace

size_t hash_workspace(size_t bytes) { return blocks_of(bytes) * sizeof(uint64_t); }

cudaError_t hash_launch(cudaStream_t stream, const void *data, size_t bytes, uint64_t *device_out, void *workspace, size_t workspace_bytes) {
  const unsigned blocks = blocks_of(bytes);
  if (workspace_bytes < hash_workspace(bytes)) return cudaErrorInvalidValue;
  uint64_t *const sums = blocks == 1 ? device_out : static_cast<uint64_t *>(workspace);
  const auto *const from = static_cast<const unsigned char *>(data);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % 16 == 0;
  const cudaError_t error = launch(aligned ? hash_chunks<true> : hash_chunks<false>, blocks, kBlock, 0, stream, from, bytes, sums);
  if (error != cudaSuccess || blocks == 1) return error;
  return launch(hash_sums, 1, kBlock, 0, stream, sums, blocks, bytes, device_out);
}

}  // namespace ckpt::cuda
