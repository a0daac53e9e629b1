// Costs change: other sizes of a mixture's experts, a clock that throttles, another load. A tape that may plan again
// (CKPT_REPLAN_AUTO, strategy AUTO, a plan of its own) goes on measuring, and this says what and when. The rules look at
// measurements alone, so that a test can give them:
//
//   every 32nd step of a recording is measured again, once its first two steps have been;
//   an item's cost of now is the median of the latest three (the one that the plan was made by counts as the first three), so
//   that one step that something else disturbed changes nothing;
//   costs have drifted when more than 10 % of the forward time has moved from some items to others (half the sum of the
//   differences of their shares): all of it slower by the same factor is no reason for another plan;
//   then a plan is made by the costs of now, and taken if it is predicted to save more than 2 % of the step. If not, the next
//   measurement waits twice as long, up to 1024 steps.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/graph.h"

namespace ckpt::tape {

class Drift {
 public:
  static constexpr uint32_t kFirstWait = 32, kLongestWait = 1024;
  static constexpr double kShift = 0.1, kGain = 0.02;

  // From the costs that the plan is made by.
  explicit Drift(const plan::Graph &graph);

  // Counts a step that begins; true: it is to be measured.
  bool due();
  // What a step has measured; < 0: nothing. True: costs have drifted, and count from now on as those that the plan is made by.
  bool take(const std::vector<double> &item_seconds, const std::vector<double> &backward_seconds);
  void write_costs(plan::Graph *graph) const;  // those of now
  void planned(bool taken);

 private:
  std::vector<double> now() const;

  uint32_t wait_ = kFirstWait, steps_ = 0;
  size_t item_count_;
  std::vector<double> base_;                   // per item, then per node's backward
  std::array<std::vector<double>, 3> latest_;  // a ring
  uint32_t next_ = 0;
};

}  // namespace ckpt::tape
