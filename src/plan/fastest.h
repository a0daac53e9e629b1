// AUTO: the fastest program that fits. Chains go to the exact planner (best_chain.h), everything else to a search
// (graph_search.h), and to both go chains whose outputs may be placed over their inputs, and chains in a pipeline: the classes
// know neither the one nor the other.
#pragma once

#include "plan/make_plan.h"

namespace ckpt::plan {

// Fills all of `out`. The request's strategy and patterns are not looked at. BUDGET has its text.
Status find_fastest(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start, Planned *out);

// Points of time over budget, in any order; some may be no better than others.
Status find_fastest_curve(const Graph &graph, const GradientMap &gradients, const PlanRequest &request, uint32_t capacity, std::vector<CurvePoint> *out);

}  // namespace ckpt::plan
