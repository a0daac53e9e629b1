// Filling host memory. One implementation per instruction set, all with the same bits; the best that this machine has is
// chosen once. Tests name an implementation to compare them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ckpt::rng {

// Where a fill starts. word + count does not pass 2^64 (snapshot.h's stream_of checks it).
struct Stream {
  uint64_t seed;
  uint64_t subsequence;
  uint64_t word;
};

struct Fills {
  void (*u32)(const Stream &stream, size_t count, uint32_t *out);
  void (*uniform)(const Stream &stream, size_t count, float *out);
  void (*normal)(const Stream &stream, size_t count, float mean, float stddev, float *out);
  // 1 where the word is less than `threshold`, else 0.
  void (*below)(const Stream &stream, size_t count, uint32_t threshold, uint8_t *out);
};

enum class Isa { SCALAR, AVX2, AVX512 };

// NULL where this build or machine lacks it; SCALAR is always there.
const Fills *fills(Isa isa) noexcept;
const Fills &best_fills() noexcept;

// The fill that a threshold in [0, 2^32] asks for: the two ends need no random word.
void bernoulli(const Fills &fills, const Stream &stream, size_t count, uint64_t threshold, uint8_t *out) noexcept;

extern const Fills kScalarFills;
#if defined(__x86_64__) && defined(__GNUC__)
#define CKPT_RNG_X86 1
extern const Fills kAvx2Fills, kAvx512Fills;
#endif

}  // namespace ckpt::rng
