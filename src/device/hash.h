// The hash of device contents, one text for the CPU and for kernels. Bytes are cut into chunks; a chunk goes through eight independent
// lanes of xor-shift and multiply over 64-byte stripes, so that the multiplier's latency is hidden; the chunks' hashes, each mixed with
// its place, are added up: in any order, so any number of threads may work on chunks.
//
// A lane's step is a bijection of the lane for a given word, and of the word for a given lane: a single changed word always shows.
// A product moves differences upwards only, and one in the top bit (a sign) not at all: the shift brings the upper half down
// before it, so that one flipped bit is not cancelled by another in a later word.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rng/philox.h"  // CKPT_BOTH_SIDES

namespace ckpt::device::hash {

constexpr size_t kLanes = 8, kStripe = kLanes * sizeof(uint64_t);
constexpr size_t kChunk = 4096;  // bytes: a lane's chain of 64 steps, which a GPU's thread needs some microseconds for
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // odd; 2^64 / golden ratio

CKPT_BOTH_SIDES uint64_t step(uint64_t lane, uint64_t word) {
  uint64_t x = lane ^ word;
  x = (x ^ x >> 32) * kMultiplier;
#if defined(__GNUC__) && !defined(__CUDACC__)
  asm("" : "+r"(x));  // stays scalar: a vector of 64-bit products takes three times as many multiplications
#endif
  return x;
}

// The xor-shift-multiply finaliser of a 64-bit word (bijective; constants of David Stafford's variant 13).
CKPT_BOTH_SIDES uint64_t finish(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

CKPT_BOTH_SIDES uint64_t first_state(size_t lane) { return finish(lane + 1); }

// A chunk's hash: begin, then `join` with each lane in order. The number of bytes tells a tail of zeros from no tail.
CKPT_BOTH_SIDES uint64_t begin_join(size_t bytes) { return finish(bytes); }
CKPT_BOTH_SIDES uint64_t join(uint64_t chunk, uint64_t lane) { return step(chunk, finish(lane)); }

// The whole: finish(begin_total(bytes) + the sum of all shares).
CKPT_BOTH_SIDES uint64_t begin_total(size_t bytes) { return finish(~static_cast<uint64_t>(bytes)); }
CKPT_BOTH_SIDES uint64_t share(uint64_t chunk, uint64_t index) { return finish(chunk + index * kMultiplier); }

}  // namespace ckpt::device::hash
