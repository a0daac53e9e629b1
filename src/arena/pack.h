// Offsets for buffers whose lifetimes are all known: dynamic storage allocation. NP-hard, so a ladder of methods, each run only
// while the ones before it have not reached the goal (the lower bound, or the capacity that the caller asks for):
//   1. lower bound: the largest live load (a sweep)
//   2. placing as it goes, and a portfolio of greedy orders (pack_greedy.h)
//   3. local search on the order (pack_local.h)
//   4. exact search with a node budget (pack_exact.h)
// Pure: no clock, no randomness but from constants, ties broken by index. Effort is counted in work units (one buffer looked
// at, a few nanoseconds), so the same input gives the same answer on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace ckpt::arena {

struct PackBuffer {
  uint64_t begin, end;  // live in [begin, end)
  size_t bytes;         // 0: takes no place, offset 0
};

struct PackLimits {
  size_t capacity = 0;  // stop at a height of at most this; 0: at the lower bound
  uint64_t work = 0;    // at most about so many units after the first greedy answer; 0: kDefaultPackWork
};

struct Packing {
  std::vector<size_t> offsets;  // in the order of the buffers
  size_t lower_bound = 0;       // the largest live load
  size_t height = 0;            // of the offsets: the highest end
  bool proved = false;          // no packing is lower
  bool refuted = false;         // no packing is as low as the capacity that was asked for
  uint64_t work = 0;            // spent
};

inline constexpr uint64_t kDefaultPackWork = 600'000'000;

// Always writes the best packing found, also where it is higher than the capacity: that is for the caller to judge. Errors:
// INVALID_ARGUMENT (begin >= end), OVERFLOW (a live load beyond 2^63).
Status pack(std::span<const PackBuffer> buffers, const PackLimits &limits, Packing *out);

}  // namespace ckpt::arena
