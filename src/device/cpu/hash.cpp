#include "device/hash.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "device/cpu/cpu.h"

namespace ckpt::device::cpu {
namespace {

using namespace device::hash;

// The lanes as eight variables, so that they live in registers.
struct Lanes {
  uint64_t a = first_state(0), b = first_state(1), c = first_state(2), d = first_state(3);
  uint64_t e = first_state(4), f = first_state(5), g = first_state(6), h = first_state(7);

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

uint64_t chunk_hash(const unsigned char *at, size_t bytes) {
  Lanes lanes;
  size_t rest = bytes;
  for (; rest >= kStripe; rest -= kStripe, at += kStripe) lanes.add(at);
  if (rest != 0) {
    unsigned char last[kStripe] = {};
    std::memcpy(last, at, rest);
    lanes.add(last);
  }
  uint64_t result = begin_join(bytes);
  for (const uint64_t l : {lanes.a, lanes.b, lanes.c, lanes.d, lanes.e, lanes.f, lanes.g, lanes.h}) result = join(result, l);
  return result;
}

}  // namespace

uint64_t hash(const void *data, size_t bytes) noexcept {
  const auto *const at = static_cast<const unsigned char *>(data);
  uint64_t total = begin_total(bytes);
  for (size_t done = 0; done < bytes; done += kChunk)
    total += share(chunk_hash(at + done, std::min(kChunk, bytes - done)), done / kChunk);
  return finish(total);
}

}  // namespace ckpt::device::cpu
