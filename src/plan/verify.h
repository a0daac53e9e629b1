// An independent check of a program against every rule of the machine. Shares no code with machine, simulator or planner:
// it reads the graph's plain data only.
#pragma once

#include <span>

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan {

struct Verified {
  size_t peak = 0;  // live load, in footprints
  size_t held = 0;
  double seconds = 0, recompute_seconds = 0;
};

// INVALID_PLAN: the text names the action's number, the rule and what was found.
Status verify(const Graph &graph, std::span<const Root> roots, std::span<const Action> actions, Verified *out);

}  // namespace ckpt::plan
