// From a request to a program with its prediction.
#pragma once

#include "plan/simulate.h"
#include "plan/strategy.h"

namespace ckpt::plan {

struct Planned {
  Program program;
  Simulation prediction;                   // of one recording; the height is that of all in flight
  uint32_t strategy = CKPT_STRATEGY_AUTO;  // what AUTO chose, or AUTO for a program of its own
  uint32_t k = 0;
  size_t minimum_budget = 0;  // also set when the request is refused for its budget; 0: not looked for
};

// BUDGET: the text has the budget, and the smallest one that works. `start`: what lives in the arena beside this step.
Status make_plan(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out);

// The smallest budget that make_plan accepts (the request's own is not looked at).
Status find_minimum_budget(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, size_t *out);

// A backward pass from a live state that no plan knows. `machine`'s placer peaks count from now. `retain`: what is live now
// stays live, but for CONSUMED slots, and for what must go lest the budget be exceeded. BUDGET as above; CONFLICT: `retain`,
// and a CONSUMED slot that cannot be made again.
Status plan_backward(const PaperMachine &machine, const GradientMap &gradients, bool retain, size_t budget, Planned *out);

}  // namespace ckpt::plan
