// AUTO: the fastest of many programs that fits. The seam for better planners: whoever finds faster programs for some graphs
// does it in here.
//
// A set of candidates that does not depend on the budget is simulated and ordered into a staircase, in which each next one is
// slower and lower. A budget takes the first that fits. So a smaller budget never predicts less time or a higher arena,
// whatever the placer makes of a program. (Of two programs the lower may have the higher live load. The budget bounds the
// height: to refuse such a program would be to refuse a budget that works.) The candidates begin with the corners of each
// family (candidates.h) and go on where the stairs are steepest; between two stairs the budget's own place is found by halving.
#pragma once

#include "plan/make_plan.h"

namespace ckpt::plan {

// Fills program, prediction, strategy, k and minimum_budget. `budget` 0: none. BUDGET has its text.
Status find_fastest(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, size_t budget, const arena::Placer &start, Planned *out);

}  // namespace ckpt::plan
