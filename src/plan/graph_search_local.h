// The second half of the search for graphs: a local search over policies that keeps the whole front of time over memory.
//
// An archive has the points that nothing found so far dominates, fastest first. The point that has been looked around least tries
// its next moves (graph_search_choices.h); what is not dominated joins and pushes out what it dominates. It ends when all moves of
// all points are tried, or after so many units of work. Budgets play no part in it, so a larger one never gets a slower program.
#pragma once

#include <unordered_set>

#include "plan/graph_search_choices.h"
#include "plan/graph_search_trial.h"

namespace ckpt::plan {

struct LocalPoint {
  Choices choices;
  int64_t ticks = 0;
  uint64_t recompute_count = 0;
  size_t height = 0;
  uint32_t next = 0, tried = 0;  // moves
};

class LocalSearch {
 public:
  LocalSearch(const Trial &trial, const ChoiceSpace &space, uint64_t work_limit) : trial_(trial), space_(space), work_limit_(work_limit) {}

  Status seed(const Policy &policy) { return consider(space_.from_policy(policy), 0); }
  Status run();

  const std::vector<LocalPoint> &front() const { return front_; }  // fastest first, each next one lower
  uint64_t work() const { return work_; }
  bool finished() const { return finished_; }                      // every move of every point was tried

 private:
  Status consider(Choices choices, uint32_t next);
  bool is_news(const LocalPoint &p) const;
  void insert(LocalPoint p);
  size_t pick() const;

  const Trial &trial_;
  const ChoiceSpace &space_;
  const uint64_t work_limit_;
  uint64_t work_ = 0;
  bool finished_ = false;
  std::vector<LocalPoint> front_;
  std::unordered_set<uint64_t> seen_;  // choices, hashed
};

}  // namespace ckpt::plan
