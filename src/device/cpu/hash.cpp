// Eight independent lanes of xor-shift and multiply over 64-byte stripes, so that the multiplier's latency is hidden. Each
// step is a bijection of its lane for a given word, and of the word for a given lane: a single changed word always shows.
// A product moves differences upwards only, and one in the top bit (a sign) not at all: the shift brings the upper half down
// before it, so that one flipped bit is not cancelled by another in a later word.
#include <cstring>
#include <initializer_list>

#include "device/cpu/cpu.h"

namespace ckpt::device::cpu {
namespace {

constexpr size_t kLanes = 8, kStripe = kLanes * sizeof(uint64_t);
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // odd; 2^64 / golden ratio

inline uint64_t step(uint64_t lane, uint64_t word) {
  uint64_t x = lane ^ word;
  x = (x ^ x >> 32) * kMultiplier;
#if defined(__GNUC__)
  asm("" : "+r"(x));  // stays scalar: a vector of 64-bit products takes three times as many multiplications
#endif
  return x;
}

// The xor-shift-multiply finaliser of a 64-bit word (bijective; constants of David Stafford's variant 13).
uint64_t finish(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// The lanes as eight variables, so that they live in registers.
struct Lanes {
  uint64_t a = finish(1), b = finish(2), c = finish(3), d = finish(4), e = finish(5), f = finish(6), g = finish(7), h = finish(8);

  inline void add(const unsigned char *at) {
    uint64_t word[kLanes];
    std::memcpy(word, at, sizeof word);
    a = step(a, word[0]);
    b = step(b, word[1]);
    c = step(c, word[2]);
    d = step(d, word[3]);
    e = step(e, word[4]);
    f = step(f, word[5]);
    g = step(g, word[6]);
    h = step(h, word[7]);
  }
};

}  // namespace

uint64_t hash(const void *data, size_t bytes) noexcept {
  Lanes lanes;
  const auto *at = static_cast<const unsigned char *>(data);
  size_t rest = bytes;
  for (; rest >= kStripe; rest -= kStripe, at += kStripe) lanes.add(at);
  if (rest != 0) {
    unsigned char last[kStripe] = {};
    std::memcpy(last, at, rest);
    lanes.add(last);
  }
  uint64_t result = finish(bytes);  // tells a tail of zeros from no tail
  for (const uint64_t l : {lanes.a, lanes.b, lanes.c, lanes.d, lanes.e, lanes.f, lanes.g, lanes.h}) result = step(result, finish(l));
  return finish(result);
}

}  // namespace ckpt::device::cpu
