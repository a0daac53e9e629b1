// The first half of the search for graphs: the families of candidates.h, ordered into a staircase.
//
// A set of candidates that does not depend on the budget is simulated; in the staircase each next one is slower and lower. They
// begin with the corners of each family and go on where the stairs are steepest; between two stairs the budget's own place is
// found by halving.
#pragma once

#include "plan/graph_search_trial.h"
#include "plan/make_plan.h"
#include "plan/stairs.h"

namespace ckpt::plan {

class Rows {
 public:
  static constexpr uint64_t kRunsAtOnce = 60'000;  // of Again::nothing: always tried

  explicit Rows(const Trial &trial);

  Status look();
  Status look_at_corners();  // the first part of it
  // After look(). BUDGET without a text: nothing fits.
  Status choose(size_t budget, Point *point) const;
  Status try_one(const Family &family, uint32_t member, Point *point) const;
  Status add(const Family &family, uint32_t member);

  const Candidates &candidates() const { return candidates_; }
  const std::vector<Point> &stairs() const { return found_.stairs(); }
  bool large() const { return graph_.item_bytes.size() > kLarge; }

 private:
  static constexpr double kTicks = Trial::kTicks;
  static constexpr size_t kWork = 1'600'000;                      // items of all simulated programs together
  static constexpr size_t kLeastTries = 14, kMostTries = 400;
  static constexpr size_t kLarge = 20'000;                        // items
  static constexpr double kFine = 1.0 / 256;                      // stairs closer than that are close enough
  static constexpr double kFlat = 0.1;

  Status try_between();
  std::vector<Family> rows_through(const Point &high, const Point &low) const;
  bool member_at(const Family &row, size_t height, const Point &low, uint32_t *member) const;
  Status try_gap(const Point &high, const Point &low, bool *any);
  double steepness(const Point &high, const Point &low) const;
  Status refine(size_t budget, size_t stair, Point *point) const;
  std::vector<uint32_t> groups() const;

  const Trial &trial_;
  const Graph &graph_;
  const Candidates candidates_;
  uint32_t tries_ = 0;
  Stairs found_;
};

}  // namespace ckpt::plan
