// What to keep of each node, in the order in which it pays: from nothing to everything that spares work, the seconds saved
// for each byte falling. Within a node the choices are the corners of the lower convex hull of (bytes kept, seconds of the
// first run and the fill before its backward), over all sets of slots where they are few.
#pragma once

#include "plan/graph.h"

namespace ckpt::plan {

struct KeepStep {
  uint32_t node = 0;
  Bits keep;          // slots of that node from here on, in place of what an earlier step kept
  size_t bytes = 0;   // more than before
  double rate = 0;    // seconds saved per byte
};

// Equal gains: later nodes first, since they are through before the others need memory to be filled.
std::vector<KeepStep> keep_order(const Graph &graph, const GradientMap &gradients);

}  // namespace ckpt::plan
