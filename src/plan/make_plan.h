// From a request to a program with its prediction.
#pragma once

#include "plan/simulate.h"
#include "plan/strategy.h"

namespace ckpt::plan {

struct Planned {
  Program program;
  Simulation prediction;
  uint32_t strategy = CKPT_STRATEGY_AUTO;  // what AUTO chose, or AUTO for a program of its own
  uint32_t k = 0;
  size_t minimum_budget = 0;  // also set when the request is refused for its budget
};

// BUDGET: the text has the budget, and the smallest one that works. `start`: what lives in the arena beside this step.
Status make_plan(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out);

// A backward pass from a live state that no plan knows. `machine`'s placer peaks count from now. BUDGET as above.
Status plan_backward(const PaperMachine &machine, const GradientMap &gradients, bool retain, size_t budget, Planned *out);

}  // namespace ckpt::plan
