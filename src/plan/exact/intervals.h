// Frontiers of all stretches s..t of a chain: least bytes for each cost up to a limit, exact.
//
// State (s, start, side, t, option): segments s..t-1 are to be run, t has run and stores `option` (inside the bytes), then
// all of s..t go backward. Of s its start's slots are live. Boundary s is live and survives outside the bytes (side 0), or
// is inside and goes once nobody reads it (side 1; where s's backward reads it that is side 0 and x[s] more bytes).
//
//   split at j, option q of j:  run s..j, keep q; then j+1..t; then s..j with q stored
//
// Both parts are frontiers of shorter stretches; they combine by a two-pointer merge. Costs above the limit are cut, so
// only jumps and parts within it are looked at. Stretches of equal content (repeated blocks) are computed once.
#pragma once

#include <algorithm>
#include <memory>

#include "plan/exact/model.h"

namespace ckpt::plan::exact {

struct Front {
  const Point *begin = nullptr;  // bytes ascend, costs descend
  uint32_t count = 0;
  const Point &cheapest() const { return begin[count - 1]; }
};

struct Work {
  uint64_t spent = 0, limit = UINT64_MAX;
  bool out() const { return spent > limit; }
};

// Of candidates for a frontier, turns away most of those for which there is one of less cost and no more bytes.
class Sieve {
 public:
  void begin(Ticks low, Ticks high) {
    low_ = low;
    width_ = (high - low) / kParts + 1;
    std::fill(least_, least_ + kParts, kNoRoom);
  }
  bool admits(const Point &p) {
    auto k = p.c <= low_ ? 0 : std::min(static_cast<size_t>((p.c - low_) / width_), kParts - 1);
    if (k > 0 && least_[k - 1] <= p.m) return false;
    for (; k < kParts && least_[k] > p.m; ++k) least_[k] = p.m;
    return true;
  }

 private:
  static constexpr size_t kParts = 64;
  Ticks low_ = 0, width_ = 1;
  Bytes least_[kParts];  // of all that cost no more than this part of the range
};

// What stretches may cost, each by itself: of a row s those from s to s, s + 1, ...; beyond the row's end: nothing is wanted.
// A stretch inside another may cost at least as much.
struct CostLimits {
  std::vector<std::vector<Ticks>> rows;
  Ticks of(uint32_t s, uint32_t t) const { return t - s < rows[s].size() ? rows[s][t - s] : -1; }
};

class Intervals {
 public:
  explicit Intervals(const Model &model);

  // Stretches within `room` bytes in total, costs up to `limit` and to their own limits. False: the work ran out.
  // limit -1: none.
  bool compute(Bytes room, Ticks limit, CostLimits limits, Work *work);
  void share_floors(const Intervals &other);  // of the same model; the room comes with them

  const Model &model() const { return model_; }
  Bytes room() const { return room_; }
  Ticks limit() const { return limit_; }
  // The earliest s for which stretches that end at t are known.
  uint32_t first_known(uint32_t t) const { return t + 1 - static_cast<uint32_t>(columns_[t].size()); }
  Front front(uint32_t s, uint32_t start, uint32_t side, uint32_t t, uint32_t option) const {
    const uint32_t from = t - s;
    if (from >= columns_[t].size() || columns_[t][from] == kEmpty) return {};
    const Slice &f = slices_[columns_[t][from] + (start * sides_[s] + side) * option_count(t) + option];
    return {points_.data() + f.begin, f.count};
  }
  // The pairs s, t whose stretch may lie behind a jump: those wanted by the limits, or all that are looked at. What such a
  // stretch costs at least, known or not.
  uint32_t pair_end(uint32_t s) const {
    return s + static_cast<uint32_t>(limits_.rows.empty() ? (*floors_)[s].size() : std::min(limits_.rows[s].size(), (*floors_)[s].size()));
  }
  double unknown_cost(uint32_t s, uint32_t t) const { return std::max(static_cast<double>(limit_ + 1), static_cast<double>((*floors_)[s][t - s])); }
  double floor(uint32_t s, uint32_t t) const { return (*floors_)[s][t - s]; }
  // In chains of thousands of segments longer stretches than this are not looked at: what lies behind costs at least tail_cost.
  uint32_t longest() const { return longest_; }
  double tail_cost(uint32_t s) const { return std::max(static_cast<double>(limit_ + 1), static_cast<double>((*floors_)[s].back())); }
  // What follows a split: the stretch s..t where boundary s survives (stays) or goes; add *shift to its bytes.
  Front right(uint32_t s, bool stays, uint32_t t, uint32_t option, Bytes *shift) const {
    const bool reads = model_.segments[s].reads_input;
    *shift = reads && !stays ? model_.x[s] : 0;
    return front(s, 0, reads || stays ? 0 : 1, t, option);
  }
  uint32_t sides(uint32_t s) const { return sides_[s]; }
  uint32_t option_count(uint32_t t) const { return static_cast<uint32_t>(model_.segments[t].options.size()); }
  Bytes sticky(uint32_t begin, uint32_t end) const { return sticky_[end] - sticky_[begin]; }
  bool may_jump_to(const Option &o) const { return !o.stays && !o.at_once && (model_.slots_at_jumps || o.bare); }
  size_t point_count() const { return points_.size(); }
  // No stretch s..t that stores `option` costs less within so many bytes.
  double bound(uint32_t s, uint32_t t, Bytes room, uint32_t option) const;
  double bound_of(uint32_t s, uint32_t t, Bytes left) const;  // `left`: bytes beside what t needs

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  struct Slice {
    uint32_t begin = 0, count = 0;
  };
  struct Split;

  void make_bounds();
  void make_floors();
  void share_limits(CostLimits *limits) const;
  uint32_t known_block(uint32_t s, uint32_t t) const;
  bool compute_block(uint32_t s, uint32_t t, Work *work);
  void leaf_block(uint32_t s);
  void split_at_start(uint32_t s, uint32_t t, uint32_t start, uint32_t side, Work *work);
  void splits_behind(uint32_t s, uint32_t t, uint32_t start, uint32_t side, Work *work);
  void add_split(const Split &split, uint32_t t, uint32_t option, const Option &stored, Work *work);
  void take_frontier(std::vector<Point> *candidates, Slice *out);

  const Model &model_;
  Bytes room_ = 0;
  Ticks limit_ = 0;
  Ticks cut_ = 0;  // of the block at hand
  std::vector<uint8_t> sides_;
  std::vector<Bytes> sticky_;                // prefix sums
  std::vector<Ticks> jumps_;                 // prefix sums of start 0's jump costs; walls count 0
  Twins twins_;
  std::vector<double> multipliers_;
  std::vector<std::vector<double>> hull_sums_;  // per multiplier: prefix sums
  std::shared_ptr<const std::vector<std::vector<float>>> floors_;  // by s, then t - s: no stretch costs less, whatever t stores
  uint32_t longest_ = 0;
  CostLimits limits_;
  std::vector<std::vector<uint32_t>> columns_;  // by t, then t - s: first slice of the block
  std::vector<Slice> slices_;
  std::vector<Point> points_;
  std::vector<std::vector<Point>> candidates_;  // by option of t
  std::vector<Sieve> sieves_;
  std::vector<uint32_t> wanted_;                // options of t, of the block at hand
  std::vector<Bytes> best_bytes_;               // scratch of take_frontier, by cost
};

}  // namespace ckpt::plan::exact
