// What is packed, in the form that the methods want. Times become *sections*: the maximal sets of buffers that are live
// together, numbered in time; two buffers overlap in time exactly when they share a section. Sizes become units of their
// greatest common divisor: in some optimal packing every offset is a sum of sizes, so nothing is lost. Parts of the time axis
// that no buffer crosses are packed one by one.
#pragma once

#include <algorithm>

#include "arena/pack.h"

namespace ckpt::arena {

struct PackItem {
  uint32_t first, last;  // sections [first, last)
  size_t size;           // units, not 0
  bool overlaps(const PackItem &other) const noexcept { return first < other.last && other.first < last; }
};

// One part of the time axis, with sections of its own.
struct PackProblem {
  std::vector<PackItem> items;
  std::vector<uint32_t> buffers;  // per item: the caller's index
  std::vector<double> lives;      // per item: its lifetime as the caller counts it
  std::vector<size_t> load;       // per section
  size_t bound = 0;               // the largest of them
};

struct PackParts {
  std::vector<PackProblem> parts;  // of the largest bound first
  size_t unit = 1;                 // bytes
  size_t bound = 0;                // units
};

// Heights and loads beyond this are not looked at.
inline constexpr size_t kMaxPackBytes = SIZE_MAX >> 1;
inline constexpr size_t kMaxPackBuffers = UINT32_MAX >> 1;

Status split(std::span<const PackBuffer> buffers, PackParts *out);

// Offsets of one problem's items, in units.
struct PackAnswer {
  std::vector<size_t> offsets;
  size_t height = SIZE_MAX;  // SIZE_MAX: none yet
};

}  // namespace ckpt::arena
