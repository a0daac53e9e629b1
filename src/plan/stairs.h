// Simulated candidates and the staircase that they form.
#pragma once

#include <map>
#include <tuple>

#include "plan/candidates.h"

namespace ckpt::plan {

// One candidate, simulated.
struct Point {
  Family family;
  uint32_t member = 0;
  uint32_t number = 0;   // in the order in which they were tried
  int64_t ticks = 0;     // of time, coarse enough that sums in another order are equal
  uint64_t recompute_count = 0;
  size_t height = 0, peak = 0;
};

// Is p a stair between these two?
constexpr bool between(const Point &high, const Point &p, const Point &low) {
  return p.ticks >= high.ticks && p.ticks <= low.ticks && p.height > low.height && p.height < high.height;
}

// Neighbours in a row: the last tried member that is no higher than something, and the next tried one.
struct Bracket {
  const Point *below = nullptr, *above = nullptr;
};

class Stairs {
 public:
  const std::vector<Point> &points() const { return points_; }
  const std::vector<Point> &stairs() const { return stairs_; }  // fastest first
  bool tried(const Family &family, uint32_t member) const { return rows_.contains(key(family, member)); }
  Bracket bracket(const Family &family, size_t height) const;
  void add(Point point);
  size_t first_that_fits(size_t budget) const;  // stairs().size(): none

 private:
  using Key = std::tuple<uint32_t, Again, Order, uint32_t>;
  static Key key(const Family &f, uint32_t member) { return {f.group, f.again, f.order, member}; }

  std::vector<Point> points_, sorted_, stairs_;
  std::map<Key, uint32_t> rows_;
};

}  // namespace ckpt::plan
