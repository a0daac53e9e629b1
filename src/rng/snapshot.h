// Snapshots of the generator: packing, checks, and the stateful generator for interplay with cuRAND's and PyTorch's.
#pragma once

#include "base/status.h"
#include "ckpt/rng.h"
#include "rng/fill.h"

namespace ckpt::rng {

// subsequence = segment * 2^36 + step, offset = site * 2^48 + element. Frozen: tests/vectors/philox.txt.
inline constexpr int kStepBits = 36, kSegmentBits = 28, kElementBits = 48, kSiteBits = 16;

// OVERFLOW names the part, its value and the bound.
Status pack(uint64_t seed, uint64_t step, uint64_t segment, uint32_t site, ckpt_philox *out) noexcept;

// Parts that are known to fit.
constexpr ckpt_philox packed(uint64_t seed, uint64_t step, uint64_t segment, uint64_t site) noexcept {
  return {seed, segment << kStepBits | step, site << kElementBits, nullptr};
}

// round(probability * 2^32); UINT64_MAX outside [0, 1].
uint64_t threshold_of(double probability) noexcept;

// A fill's arguments, but for where its numbers come from; *word: the first one. `function` and `out` are for the text.
Status check_fill(const char *function, const ckpt_philox *philox, uint64_t first, size_t count, const void *out, uint64_t *word) noexcept;
Status check_normal(const char *function, float mean, float stddev) noexcept;
Status check_probability(const char *function, double probability) noexcept;

// The same, and where it starts: reads the step's word, which is host memory.
Status stream_of(const char *function, const ckpt_philox *philox, uint64_t first, size_t count, const void *out,
                 Stream *stream) noexcept;

class Generator {
 public:
  Generator(uint64_t seed, uint64_t subsequence, uint64_t position) noexcept
      : seed_(seed), subsequence_(subsequence), position_(position) {}
  ckpt_philox snapshot() const noexcept { return {seed_, subsequence_, position_, nullptr}; }
  Status restore(const ckpt_philox &philox) noexcept;
  Status advance(uint64_t words, bool round_up_to_4) noexcept;

 private:
  uint64_t seed_, subsequence_, position_;
};

}  // namespace ckpt::rng
