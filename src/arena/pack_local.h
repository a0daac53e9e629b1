// Local search on the order of a greedy packing, for what is too large for an exact search. Squeaky wheel (Joslin and
// Clements, 1999): place all, blame the items that end above the goal, let them go earlier next time.
#pragma once

#include "arena/pack_greedy.h"

namespace ckpt::arena {

// Improves *best, that comes from `order`, until `goal` is reached or `work` is spent.
void pack_local(const PackProblem &problem, PackEngine &engine, size_t goal, uint64_t work, std::vector<uint32_t> order, PackAnswer *best);

}  // namespace ckpt::arena
