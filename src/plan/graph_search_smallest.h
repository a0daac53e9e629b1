// The least memory that a graph was found to run in, whatever its parts cost: costs are measured and differ between steps and
// ranks, and the smallest budget must not. The corners of the rows and the local search, on a copy of the graph in which all items
// cost the same; or, of few items, every state of the machine.
#pragma once

#include "plan/graph_search_local.h"
#include "plan/graph_search_rows.h"

namespace ckpt::plan {

class Smallest {
 public:
  Smallest(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, uint64_t work_limit, const arena::Placer &start);

  Status look();
  // complete() false: a program that may be lower has so many runs that it was left out. This takes it in.
  Status look_further();
  bool complete() const { return complete_; }
  // After look(). Of few items the program of the least load, else empty; and a policy, unless that program packs so low.
  const Program &program() const { return program_; }
  bool has_policy() const { return searched_; }
  // The strategy that does the same, or AUTO.
  Policy policy(uint32_t *strategy, uint32_t *k) const;
  uint64_t work() const { return local_.work(); }

 private:
  Status try_all_states(bool *packs);

  const Graph graph_;
  const GradientMap &gradients_;
  const Trial trial_;
  Rows rows_;
  const ChoiceSpace space_;
  LocalSearch local_;
  Program program_;
  bool complete_ = false, searched_ = false;
};

}  // namespace ckpt::plan
