// The exact planner for chains: the fastest program of a class (CKPT_CLASS_*) within a bound on the live load, with a
// proof, or the best found with certified gaps. No grid: bytes are bytes, and costs are integers of a tick that is exact
// for costs of up to 2^20 of a common unit, and else a small fraction of a segment.
#pragma once

#include <memory>
#include <vector>

#include "plan/graph.h"
#include "plan/program.h"

namespace ckpt::plan::exact {

struct Answer {
  Program program;                    // as written by the class's recurrences, before tighten()
  uint32_t status = 0;                // CKPT_PLAN_OPTIMAL or CKPT_PLAN_GAP
  double overhead_seconds = 0;        // of `program`: its forward time minus Graph::forward_seconds()
  double class_bound_seconds = 0;     // no program of the class has less overhead
  double universal_bound_seconds = 0; // no program at all has less overhead
  size_t load = 0;                    // live load of `program`, exact, as the simulator gives it
  uint64_t work = 0;                  // work units spent
};

class Planner {  // keeps what helps the next solve (warm start)
 public:
  virtual ~Planner() = default;
  // NULL: the graph is no chain that this planner knows. `graph` is borrowed for the planner's life.
  static std::unique_ptr<Planner> create(const Graph &graph, const GradientMap &gradients, uint32_t plan_class);
  // The fastest program of live load <= load. BUDGET (no text): there is none; minimum_load() says what works. Or, where
  // knows_small() is false, none was found.
  // work_limit 0: no limit. The same arguments give the same answer on every machine.
  virtual Status solve(size_t load, uint64_t work_limit, Answer *out) = 0;
  virtual size_t enough() = 0;        // a load for which solve succeeds, known at once
  virtual size_t minimum_load() = 0;  // the smallest such load
  virtual bool knows_small() = 0;     // false: the chain is so long that minimum_load() is enough(), and the next function knows nothing
  // Some program within `load`, however slow: good where that is little more than the least. Empty where it would take more
  // actions than that, and where there is none.
  virtual Program write_small(size_t load, size_t most_actions) = 0;
  // Pareto points (load, overhead) from minimum_load (long chains: near it) up to what makes nothing twice, at most `count` (at least 2 are
  // asked for), ascending in load; programs are filled.
  virtual Status curve(uint32_t count, uint64_t work_limit, std::vector<Answer> *out) = 0;
};

}  // namespace ckpt::plan::exact
