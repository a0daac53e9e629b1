// An independent check of a program against every rule of the machine. Shares no code with machine, simulator or planner:
// it reads the graph's plain data only (names, sizes, reads, groups, flags), and derives what follows from them by itself.
#pragma once

#include <span>

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan {

struct Verified {
  size_t peak = 0;  // live load, in footprints
  size_t held = 0;  // live when the last first run is over (and what is freed right after it)
  double seconds = 0, recompute_seconds = 0;
};

// A whole step, from the beginning to the last backward. INVALID_PLAN: the text names the action's number, the rule and what
// was found. INVALID_ARGUMENT: a root that is no boundary, or is given twice. `out` is set on success only, and may be NULL.
Status verify(const Graph &graph, std::span<const Root> roots, std::span<const Action> actions, Verified *out);

}  // namespace ckpt::plan
