// AUTO on a chain: plan for a live load, place, and while the arena's height exceeds the budget plan again with the load bound
// lowered by the excess. The smallest budget is the height of the smallest plan so found.
#pragma once

#include <span>

#include "plan/exact/exact.h"
#include "plan/make_plan.h"

namespace ckpt::plan {

class BestChain {
 public:
  // `planner` is borrowed, and belongs to `graph`.
  BestChain(exact::Planner *planner, const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start);

  // BUDGET has its text; the smallest budget is 0 there where the planner knows no small programs. `budget` 0: none.
  Status run(size_t budget, Planned *out);
  Status curve(uint32_t capacity, std::vector<CurvePoint> *out);

 private:
  Status take(Program program, Planned *out) const;
  Status solve(size_t load, uint64_t work_limit, Planned *out);
  uint64_t share() const;
  bool is_near(size_t budget) const;
  bool knows_smallest() const { return !smallest_.program.actions.empty(); }
  Status try_small(Program program);
  Status try_least();
  Status find_smallest();
  Status lower(size_t budget, size_t load, Planned *out);
  Status refuse(size_t budget, Planned *out) const;
  Status compare(size_t budget, std::span<const uint32_t> strategies, Planned *out) const;
  void certify(double class_bound, double universal_bound, bool proved, Planned *out) const;

  exact::Planner *planner_;
  const Graph &graph_;
  const GradientMap &gradients_;
  const PlanRequest &request_;
  const arena::Placer &start_;
  const double base_seconds_;  // that every step takes
  uint64_t work_limit_, work_ = 0;
  Planned smallest_;  // whose height is the smallest budget; without a program where it was not looked for
  double class_bound_ = 0, universal_bound_ = 0;  // overhead, of the latest solve
  bool proved_ = false;
};

}  // namespace ckpt::plan
