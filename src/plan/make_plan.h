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
  // One per allocation, in the order in which the machine's backend is asked to allocate in a whole step; empty: the step places
  // as it goes (something else lives in the arena, or several recordings do).
  std::vector<size_t> offsets;
  uint32_t status = CKPT_PLAN_GAP;
  uint32_t plan_class = 0;     // 0: none
  double class_gap_seconds = 0, universal_gap_seconds = 0;
  uint64_t work = 0;
  uint32_t in_flight = 1;
};

// BUDGET: the text has the budget, and the smallest one that works. `start`: what lives in the arena beside this step.
Status make_plan(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out);

// Prediction and offsets of a program of any origin; `out` keeps what else is in it. BUDGET: the request's budget is exceeded.
Status predict(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Program program, Planned *out);

struct CurvePoint {
  Simulation prediction;
  uint32_t status = CKPT_PLAN_GAP;
  double class_gap_seconds = 0, universal_gap_seconds = 0;
};
// See ckpt_plan_curve.
Status find_curve(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, uint32_t capacity, std::vector<CurvePoint> *out);

// The smallest budget that make_plan accepts (the request's own is not looked at).
Status find_minimum_budget(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, size_t *out);

// A backward pass from a live state that no plan knows. `machine`'s placer peaks count from now. `retain`: what is live now
// stays live, but for CONSUMED slots, and for what must go lest the budget be exceeded. BUDGET as above; CONFLICT: `retain`,
// and a CONSUMED slot that cannot be made again.
Status plan_backward(const PaperMachine &machine, const GradientMap &gradients, bool retain, size_t budget, Planned *out);

}  // namespace ckpt::plan
