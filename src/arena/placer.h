// Placement on offsets alone: no memory is touched. The same placer serves a live arena, a plan and a trace on paper, so a
// simulated height equals a measured one by construction. Copyable: a simulation starts from a copy of the live state.
//
// Two ends. The low end grows up from 0, the high end down from the top; high offsets are given as distances from the top,
// so that nothing depends on the capacity until it is exhausted. Each end: best fit (smallest sufficient free block, ties:
// nearest to that end) among its free blocks, else the frontier moves. Freeing the block at the frontier moves it back
// (over a free neighbour too). height = furthest low frontier + furthest high frontier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ckpt::arena {

enum class Side : uint8_t { low, high };
using BlockId = uint32_t;
inline constexpr BlockId kNoBlock = UINT32_MAX;
inline constexpr size_t kUnbounded = std::numeric_limits<size_t>::max() / 4;

// See placer.cpp for the structure. Sizes must be multiples of the alignment that the caller chose, zero included: a
// zero-byte block takes no address range and is always placed.
class Placer;

}  // namespace ckpt::arena
