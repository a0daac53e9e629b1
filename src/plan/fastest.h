// AUTO: the fastest of many programs that fits. The seam for better planners: whoever finds faster programs for some graphs
// does it in here.
//
// A fixed set of candidates, whatever the budget: they are simulated, and ordered into a staircase in which each next one is
// slower, and neither higher nor of a higher peak than the one before. A budget takes the first that fits. So a smaller
// budget never predicts less time, a higher peak or a higher arena, whatever the placer makes of a program. Between two
// neighbours of the staircase that differ only in how much they keep, the budget's own place is found by halving.
#pragma once

#include "plan/make_plan.h"

namespace ckpt::plan {

// Fills program, prediction, strategy, k and minimum_budget. `budget` 0: none. BUDGET has its text.
Status find_fastest(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, size_t budget, const arena::Placer &start, Planned *out);

}  // namespace ckpt::plan
