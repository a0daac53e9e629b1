// How many bytes of address range a request of so many bytes takes: the one place that knows. Arena and simulator call it,
// so a prediction and a measurement cannot differ by rounding or guards.
#pragma once

#include <cstddef>

#include "base/checked.h"

namespace ckpt::arena {

struct SizeRule {
  size_t alignment_bytes = 256;  // power of two
  size_t guard_bytes = 0;        // before and after each block; 0 or a multiple of the alignment

  // Beyond this a footprint might not fit a size_t; whoever takes sizes from outside refuses them there.
  static constexpr size_t kMaxBytes = size_t{1} << 60;

  // 0 for 0 bytes where there are no guards. `bytes` <= kMaxBytes.
  constexpr size_t footprint(size_t bytes) const noexcept { return round_up(bytes, alignment_bytes) + 2 * guard_bytes; }
};

}  // namespace ckpt::arena
