// AUTO for graphs that are no chains: the fastest program found that fits. Rows of candidates first (graph_search_rows.h), which is
// always safe; then a local search from there (graph_search_local.h). Neither looks at the budget, so a smaller budget never
// predicts less time or a higher arena. (Of two programs the lower may have the higher live load. The budget bounds the height: to
// refuse such a program would be to refuse a budget that works.)
#pragma once

#include "plan/make_plan.h"

namespace ckpt::plan {

// Fills all of *out. budget 0: none. work_limit: as in ckpt_plan_desc, 0: the default. BUDGET has its text, and out->minimum_budget
// is the smallest that works (0: not looked for).
Status search_graph(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, size_t budget, uint64_t work_limit, const arena::Placer &start, Planned *out);

// Points of time over budget, at most `capacity`, fastest first.
Status search_graph_curve(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, uint64_t work_limit, uint32_t capacity, std::vector<CurvePoint> *out);

}  // namespace ckpt::plan
