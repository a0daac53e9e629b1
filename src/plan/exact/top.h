// The first pass over the chain: a path 0 -> n whose edges are splits (first run of p .. j, option q of j kept, what stays of
// p .. j), with memory as a resource. Costs of the parts that the edges leave to the left are frontiers of Intervals.
//
// Two bounds from one Lagrangian: no path costs less (lower); and no path that uses a part which is not known, because it
// costs more than the intervals' limit, costs less than `conclusive`. A path that costs less than that is optimal.
#pragma once

#include <optional>

#include "plan/exact/intervals.h"

namespace ckpt::plan::exact {

struct Step {
  enum class Kind : uint8_t { jump, run, free, leaf, fill } kind;
  uint8_t first = 0;       // jump, run: the segment's first run; leaf: 1 where boundary `segment` stays afterwards, 2 where it has gone already
  uint32_t segment = 0;    // free: boundary
  uint32_t from = 0;       // jump, run: start; leaf: way
  uint32_t to = 0;         // jump: start; run, leaf, fill: option
};

struct Found {
  Ticks cost = kNever;
  Bytes load = 0;
  std::vector<Step> steps;
};

class Top {
 public:
  Top(const Intervals &intervals, Work *work) : Top(intervals, intervals.room(), work) {}
  // Within less room than the intervals: what they know beyond it does no harm.
  Top(const Intervals &intervals, Bytes room, Work *work) : in_(intervals), model_(intervals.model()), room_(room), work_(work) {}

  // Edges, then multipliers. What costs more than `most` may have been left out of the intervals: bounds end there. False: no path.
  bool prepare(Ticks most);
  // What stretches may cost in programs of at most `most`; valid up to the `most` of prepare.
  CostLimits limits(Ticks most) const;
  double lower() const { return lower_; }
  double conclusive() const { return conclusive_; }
  // The cheapest path that costs at most `most`; width 0: exact; else at most so many labels per place.
  bool search(Ticks most, uint32_t width, Found *found);
  size_t label_count() const { return label_count_; }

 private:
  struct Edge {
    uint32_t to;          // place: 2 * segment + side; 2 * n: the end
    uint32_t start, segment, option;
    Ticks cost;
    Bytes floor, outside; // outside: from `to`'s labels to this place's
    const Point *left;
    uint32_t left_count;
    Ticks least() const { return cost + left[left_count - 1].c; }
  };
  struct Lagrangian {
    double lambda = 0, value = 0, slope = 0, dead = 0;
    std::vector<double> from_start, to_end;
  };

  uint32_t place(uint32_t segment, bool stays) const { return 2 * segment + (model_.segments[segment].reads_input || stays ? 0 : 1); }
  void make_edges(uint32_t p, uint32_t side);
  void add_edges_to(uint32_t p, uint32_t side, uint32_t start, uint32_t j, Ticks cost, Bytes floor, Bytes live);
  void evaluate(Lagrangian *l) const;
  void evaluate_back(Lagrangian *l) const;
  void maximise();
  double landing_to_end(uint32_t j, const Lagrangian &l) const;
  double typical_price() const;
  double jump_cost(uint32_t p, uint32_t side, uint32_t start, double lambda) const;
  double landing_cost(uint32_t j, uint32_t option, double lambda) const;
  Bytes landing_bytes(uint32_t j, uint32_t option) const;
  double prefix_cost(uint32_t place, Bytes bytes) const;
  void begin_sieve(uint32_t place, Ticks most);
  void labels_of(uint32_t place, Ticks most, std::vector<Point> *candidates);
  void thin(uint32_t width, std::vector<Point> *labels) const;
  void trace(Found *found) const;

  const Intervals &in_;
  const Model &model_;
  const Bytes room_;
  Work *work_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> first_edge_;  // by place
  std::vector<Ticks> jumps_;          // prefix sums of first jumps
  std::vector<Lagrangian> used_;
  std::vector<std::vector<Point>> labels_;
  Sieve sieve_;
  double lower_ = 0, conclusive_ = 0;
  Ticks most_ = kNever;
  size_t label_count_ = 0;
};

}  // namespace ckpt::plan::exact
