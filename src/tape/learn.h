// What a recording teaches: its structure, its sizes, which boundaries the user reads, and what things cost.
#pragma once

#include "tape/recording.h"

namespace ckpt::tape {

class Learner {
 public:
  // The known recording that comes out of `recording` and of what was known of it (may be NULL). `replan`: measured costs
  // make the plan anew; `by_costs`: they may do so later, too. `costs_later`: what it costs is not known yet (learn_costs).
  static KnownPtr learn(const Recording &recording, const Known *before, bool replan, bool by_costs, bool costs_later);
  // The costs of one step more of `known`, per item and per node, as they were measured.
  static KnownPtr learn_costs(const Known &known, std::vector<double> items, std::vector<double> backward, bool replan, bool by_costs);
  // What was measured in `recording` so far, and the least of it and of what was known.
  static void take_costs(const Recording &recording, const Known *before, plan::Graph *graph);
  // What was measured in a recording of `graph`, per item and per node; < 0: nothing.
  static void measured(const Recording &recording, const plan::Graph &graph, std::vector<double> *items, std::vector<double> *backward);
  // The same from what a clock or events gave.
  static void complete(const plan::Graph &graph, std::vector<double> *items, std::vector<double> *backward);
  // Nothing was measured: work goes with bytes.
  static void guess_costs(plan::Graph *graph);
};

}  // namespace ckpt::tape
