// Late release: a boundary in the middle may stay while what lies behind it goes backward, and goes itself later, when a
// stretch behind the next one runs its segment again, with what that keeps or with nothing. One more state:
//
//   D(j, t, q, o): boundary j is live, inside; j+1..t go backward; then q of j is stored and boundary j has gone
//
// in three ways: run j now and let the boundary go (the split of Intervals); run j now, keep less, and fill up to q afterwards;
// or jump from j to some x, D(x, t, q2, o), then D(j, x, q, q2). All of it without bounds, cut only at the room and at the cost of
// a program in hand: for short chains.
#pragma once

#include <map>
#include <tuple>

#include "plan/exact/top.h"

namespace ckpt::plan::exact {

class LateSolver {
 public:
  // frees: a boundary may go late with nothing stored too.
  LateSolver(const Model &model, bool frees) : model_(model), frees_(frees) {}
  // The cheapest program within `room` that costs less than `below`. False: there is none, or the work ran out.
  bool solve(Bytes room, Ticks below, Work *work, Found *found);

 private:
  enum class Kind : uint8_t { leaf, split, jump, now, fill, late_jump };
  struct Node {
    Bytes m;
    Ticks c;
    Kind kind;
    bool first, gone, stays;
    uint32_t s, j, from, to;  // from: a start, or kNoStart; to: option or start
    uint32_t one, two;        // done first, then
  };
  using Front = std::vector<Node>;
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;

  const std::vector<uint32_t> &stretch(uint32_t s, uint32_t start, bool stays, uint32_t t, uint32_t option);
  const std::vector<uint32_t> &late(uint32_t j, uint32_t start, uint32_t t, uint32_t kept, uint32_t option);
  void add_leaf(uint32_t s, uint32_t option, bool stays, bool gone, Front *out) const;
  void add_splits(uint32_t s, uint32_t start, bool stays, uint32_t t, uint32_t option, Front *out);
  void add_jumps(uint32_t s, uint32_t start, bool stays, uint32_t t, uint32_t option, uint32_t kept, bool late, Front *out);
  void combine(const Node &base, const std::vector<uint32_t> *one, Bytes outside, const std::vector<uint32_t> &two, Front *out);
  std::vector<uint32_t> best(Front all);
  void write(uint32_t node, std::vector<Step> *steps) const;

  const Start &start_of(uint32_t s, uint32_t start, bool first) const { return first ? model_.segments[s].first : model_.segments[s].starts[start]; }
  Bytes stored(uint32_t t, uint32_t option) const;
  Bytes sticky(uint32_t begin, uint32_t end) const { return sticky_[end] - sticky_[begin]; }

  const Model &model_;
  const bool frees_;
  Bytes room_ = 0;
  Ticks below_ = 0;
  Work *work_ = nullptr;
  std::vector<Bytes> sticky_;
  std::vector<Node> nodes_;
  std::map<Key, std::vector<uint32_t>> stretches_, lates_;
};

}  // namespace ckpt::plan::exact
