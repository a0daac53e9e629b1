// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC'11) as one text for host
// and device: nothing here but functions of their arguments. A kernel that includes it draws the same bits as the CPU.
//
//   key     = seed (low, high)
//   counter = block (low, high), subsequence (low, high)          block = word / 4, lane = word mod 4
//
// which is cuRAND's: curand_init(seed, subsequence, offset) stands at word `offset`.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define CKPT_BOTH_SIDES __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define CKPT_BOTH_SIDES inline __attribute__((always_inline))
#else
#define CKPT_BOTH_SIDES inline
#endif

namespace ckpt::rng {

constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;  // golden ratio, sqrt(3) - 1
constexpr int kRounds = 10;
constexpr uint32_t kWordsPerBlock = 4;

struct Block {
  uint32_t word[kWordsPerBlock];
};

CKPT_BOTH_SIDES Block philox(Block counter, uint32_t key0, uint32_t key1) {
  uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
#if defined(__CUDA_ARCH__)
#pragma unroll
#elif defined(__GNUC__) && !defined(__CUDACC__)  // nvcc's host side takes neither
#pragma GCC unroll 10
#endif
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * c0;
    const uint64_t p1 = static_cast<uint64_t>(kMultiplier1) * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(p0);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return Block{{c0, c1, c2, c3}};
}

CKPT_BOTH_SIDES Block block_at(uint64_t seed, uint64_t subsequence, uint64_t block) {
  const Block counter = {{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                          static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)}};
  return philox(counter, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

CKPT_BOTH_SIDES uint32_t word_at(uint64_t seed, uint64_t subsequence, uint64_t word) {
  return block_at(seed, subsequence, word / kWordsPerBlock).word[word % kWordsPerBlock];
}

// (0, 1]. The conversion rounds; both products are exact, so it is the same with and without a fused multiply-add.
CKPT_BOTH_SIDES float uniform_of(uint32_t x) { return static_cast<float>(x) * 0x1p-32f + 0x1p-33f; }

// `threshold` in [0, 2^32]; integers, since the largest words are all 1.0f as uniforms.
CKPT_BOTH_SIDES bool passes(uint32_t x, uint64_t threshold) { return x < threshold; }

}  // namespace ckpt::rng
