// Iterative deepening over one model: frontiers cut at a cost limit, bounds from the Lagrangian of the first pass, labels of
// limited width, then exact ones; the limit doubles until the best path costs less than anything that is not known.
#pragma once

#include <memory>

#include "plan/exact/top.h"

namespace ckpt::plan::exact {

struct Solution {
  Ticks cost = kNever;   // kNever: none found
  Bytes load = 0;
  Ticks bound = 0;       // no program of the class costs less
  bool proved = false;   // cost == bound
  std::vector<Step> steps;
};

class Solver {
 public:
  explicit Solver(const Model &model) : model_(model), whole_(std::make_unique<Intervals>(model)), next_(std::make_unique<Intervals>(*whole_)) {}
  // The cheapest program within `room` that costs less than `below`. With none: cost kNever, and bound >= below if proved.
  Solution solve(Bytes room, Ticks below, Work *work);

 private:
  bool resume(Bytes room, Ticks below, Work *work, Solution *best, Ticks *limit);
  void refine(Top *top, Solution *best, Ticks below, Work *work);
  bool improve(Top *top, Solution *best, Ticks below, Work *work);

  const Model &model_;
  std::unique_ptr<Intervals> whole_, next_;  // the latest that were computed to the end, and those at hand
  Ticks latest_ = kNever;                    // cost of the latest program
  Ticks known_ = 0;  // whole_ serves programs of at most this cost; 0: of none
};

}  // namespace ckpt::plan::exact
