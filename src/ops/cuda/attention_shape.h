// What the attention kernels share: where a head's rows are, the words that decide which weights are dropped, and what is refused.
//
// Kernels work on a block's `rows` (queries, or keys in the pass that makes their gradients) and stream the other kind past them in
// tiles, as FlashAttention-2 does (Dao 2023, arXiv 2307.08691): causal, tiles above the diagonal never touched. Each sum is taken by one
// thread in the order of the tiles, so the same arguments give the same bits.
#pragma once

#include <cmath>

#include "ops/cuda/context.h"
#include "ops/cuda/element.h"

namespace ckpt::ops::cuda {

constexpr unsigned kLargestHead = 256;
constexpr float kLog2E = 1.44269504f;

// By value into kernels.
struct Attention {
  uint32_t sequence, heads, channels, head_size;
  uint32_t tiles;      // blocks of rows of one head
  uint32_t vectors;    // 1: head rows can be read and written 16 bytes at a time
  uint32_t drops;      // 1: `dropout` counts
  float scale;         // 1 / sqrt(head_size)
  float to_exponent;   // scale * log2(e): of a score in powers of two
  Dropout dropout;     // scale 1 where it does not count
};

// A block's place. Kernels turn `tile` around where later rows take longer, so that long blocks begin first.
struct Place {
  uint32_t head;  // b * heads + h
  uint32_t tile;

  CKPT_ON_DEVICE explicit Place(const Attention &a) : head(blockIdx.x / a.tiles), tile(blockIdx.x % a.tiles) {}
  // Its queries in qkv (keys follow at + channels, values at + 2 channels), and its rows in out.
  CKPT_ON_DEVICE size_t in_qkv(const Attention &a) const {
    return size_t{head / a.heads} * a.sequence * (size_t{3} * a.channels) + head % a.heads * a.head_size;
  }
  CKPT_ON_DEVICE size_t in_out(const Attention &a) const {
    return size_t{head / a.heads} * a.sequence * a.channels + head % a.heads * a.head_size;
  }
  // Its first row's number in lse and dots.
  CKPT_ON_DEVICE size_t in_rows(const Attention &a) const { return size_t{head} * a.sequence; }
  // Of this head's first weight (or mask element); row i, column j follows at i * sequence + j.
  CKPT_ON_DEVICE uint64_t in_weights(const Attention &a) const { return uint64_t{head} * a.sequence * a.sequence; }
};

// Bit k: element first + k of the mask is kept. A Philox block is 4 words: N / 4 blocks, and one more where the first word is not a
// block's first.
template <unsigned N>
CKPT_ON_DEVICE uint32_t kept_bits(const Words4 &words, uint32_t last, uint64_t first) {
  static_assert(N % 4 == 0 && N <= 32);
  const uint64_t word = words.offset + first;
  const uint32_t skipped = static_cast<uint32_t>(word % 4);
  const auto four = [&](uint64_t block) {
    const rng::Block drawn = rng::block_at(words.seed, words.subsequence, block);
    uint32_t bits = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) bits |= (drawn.word[i] <= last ? 1u : 0u) << i;
    return bits;
  };
  uint32_t bits = 0;
#pragma unroll 2
  for (uint32_t k = 0; k < N; k += 4) bits |= four(word / 4 + k / 4) << k;
  if (skipped == 0) return bits;
  const uint64_t all = bits | static_cast<uint64_t>(four(word / 4 + N / 4)) << N;
  return static_cast<uint32_t>(all >> skipped);
}

// Host.
inline ckpt_status attention_of(const char *function, const Context &context, size_t batch, size_t sequence, size_t heads, size_t channels,
                                float probability, const ckpt_philox *philox, bool vectors, Attention *out, size_t *out_head_count) noexcept {
  const size_t head_size = channels / heads;
  if (head_size > kLargestHead)
    return context.gpu.fail(CKPT_ERROR_UNSUPPORTED, "ckpt_ops_%s: heads of %zu channels (%zu / %zu), expected at most %u on this device", function,
                            head_size, channels, heads, kLargestHead);
  *out = {};
  out->sequence = static_cast<uint32_t>(sequence);
  out->heads = static_cast<uint32_t>(heads);
  out->channels = static_cast<uint32_t>(channels);
  out->head_size = static_cast<uint32_t>(head_size);
  out->vectors = vectors && head_size * size_of(context.dtype) % 16 == 0 ? 1 : 0;
  out->scale = 1.0f / std::sqrt(static_cast<float>(head_size));
  out->to_exponent = out->scale * kLog2E;
  out->dropout.scale = 1.0f;
  if (probability != 0.0f) {
    out->drops = 1;
    out->dropout = dropout_of(probability, *philox);
  }
  *out_head_count = batch * heads;
  return CKPT_OK;
}

// Host: one block for each `rows` rows of each head.
template <class... P, class... A>
ckpt_status launch_tiles(Context &context, const char *name, void (*kernel)(P...), Attention shape, size_t head_count, unsigned rows,
                         unsigned threads, size_t shared_bytes, A &&...arguments) noexcept {
  constexpr size_t kWithoutAsking = size_t{48} << 10, kMostBlocks = (size_t{1} << 31) - 1;
  shape.tiles = (shape.sequence + rows - 1) / rows;
  if (head_count > kMostBlocks / shape.tiles)
    return context.gpu.fail(CKPT_ERROR_OVERFLOW, "ckpt_ops_%s: %zu heads of %u rows are more than %zu blocks of %u", name, head_count, shape.sequence,
                            kMostBlocks, rows);
  if (shared_bytes > kWithoutAsking)
    CKPT_CUDA_CALL(context, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  return launch(context, name, kernel, dim3(static_cast<unsigned>(head_count * shape.tiles)), dim3(threads), shared_bytes, shape,
                std::forward<A>(arguments)...);
}

}  // namespace ckpt::ops::cuda
