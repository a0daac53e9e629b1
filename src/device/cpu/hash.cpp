// Eight independent lanes of multiply and rotate over 64-byte stripes, so that the multiplier's latency is hidden. Each
// step is a bijection of its lane for a given word, and of the word for a given lane: a single changed word always shows.
// The rotation brings the top bits, where signs are and which a product moves nowhere, down to where the next one spreads
// them: without it two flipped signs in one lane would cancel.
#include <bit>
#include <cstring>

#include "device/cpu/cpu.h"

namespace ckpt::device::cpu {
namespace {

constexpr size_t kLanes = 8, kStripe = kLanes * sizeof(uint64_t);
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // odd; 2^64 / golden ratio

inline uint64_t step(uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * kMultiplier, 29); }

// The xor-shift-multiply finaliser of a 64-bit word (bijective; constants of David Stafford's variant 13).
uint64_t finish(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

inline void stripe(uint64_t *lane, const unsigned char *at) {
  for (size_t k = 0; k < kLanes; ++k) {
    uint64_t word = 0;
    std::memcpy(&word, at + k * sizeof word, sizeof word);
    lane[k] = step(lane[k], word);
  }
}

}  // namespace

uint64_t hash(const void *data, size_t bytes) noexcept {
  uint64_t lane[kLanes];
  for (size_t k = 0; k < kLanes; ++k) lane[k] = finish(k + 1);
  const auto *at = static_cast<const unsigned char *>(data);
  size_t rest = bytes;
  for (; rest >= kStripe; rest -= kStripe, at += kStripe) stripe(lane, at);
  if (rest != 0) {
    unsigned char last[kStripe] = {};
    std::memcpy(last, at, rest);
    stripe(lane, last);
  }
  uint64_t result = finish(bytes);  // tells a tail of zeros from no tail
  for (const uint64_t l : lane) result = step(result, finish(l));
  return finish(result);
}

}  // namespace ckpt::device::cpu
