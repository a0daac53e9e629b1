// What a recording teaches: its structure, its sizes, which boundaries the user reads, and what things cost.
#pragma once

#include "tape/recording.h"

namespace ckpt::tape {

class Learner {
 public:
  // The known recording that comes out of `recording` and of what was known of it (may be NULL). `replan`: measured costs
  // make the plan anew.
  static KnownPtr learn(const Recording &recording, const Known *before, bool replan);
  // What was measured in `recording` so far, and the least of it and of what was known.
  static void take_costs(const Recording &recording, const Known *before, plan::Graph *graph);
  // Nothing was measured: work goes with bytes.
  static void guess_costs(plan::Graph *graph);
};

}  // namespace ckpt::tape
