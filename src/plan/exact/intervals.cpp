#include "plan/exact/intervals.h"

#include <algorithm>
#include <cmath>

namespace ckpt::plan::exact {

struct Intervals::Split {
  Ticks cost;    // of the jump and the run
  Bytes floor;   // what the jump and the run take, beyond the stored option and its gradient
  Bytes outside; // what stays live while the right part is done
  uint32_t next; // the right part begins here
  bool stays;    // its boundary survives
  const Point *left;
  uint32_t left_count;
  Bytes cap;
};

Intervals::Intervals(const Model &model) : model_(model) {
  const uint32_t n = model.size();
  sides_.resize(n);
  sticky_.assign(n + 1, 0);
  jumps_.assign(n + 1, 0);
  for (uint32_t i = 0; i < n; ++i) {
    const Segment &s = model.segments[i];
    sides_[i] = s.reads_input ? 1 : 2;
    sticky_[i + 1] = sticky_[i] + s.sticky;
    jumps_[i + 1] = jumps_[i] + (s.starts[0].jump[0].cost == kNever ? 0 : s.starts[0].jump[0].cost);
  }
  twins_ = find_twins(model);
  make_bounds();
}

// Each segment before t is stored somehow, or is run again: the lower convex hull of (bytes, cost) at some multipliers.
void Intervals::make_bounds() {
  const uint32_t n = model_.size();
  struct Choice {
    double bytes, cost;
  };
  std::vector<std::vector<Choice>> choices(n);
  std::vector<double> rates;
  for (uint32_t i = 0; i < n; ++i) {
    const Segment &s = model_.segments[i];
    const Start &start = s.starts[0];
    const bool held = i + 1 < n && model_.segments[i + 1].reads_input;
    Choice all{0, -1};
    for (size_t q = 0; q < s.options.size(); ++q) {
      const Option &o = s.options[q];
      const Bytes output = held && !o.k ? model_.x[i + 1] : 0;
      if (start.run[q].cost == kNever) continue;
      choices[i].push_back({static_cast<double>(o.bytes + output), static_cast<double>(start.run[q].cost)});
      if (start.run[q].cost == 0 && (all.cost < 0 || choices[i].back().bytes < all.bytes)) all = {choices[i].back().bytes, 0};
    }
    Ticks most = 0;
    for (size_t v = 0; v < start.jump.size(); ++v) {
      if (start.jump[v].cost == kNever) continue;
      choices[i].push_back({static_cast<double>(s.sticky + s.starts[v].extra), static_cast<double>(start.jump[v].cost)});
      most = std::max(most, start.jump[v].cost);
    }
    if (most > 0 && all.bytes > 0) rates.push_back(static_cast<double>(most) / all.bytes);
  }
  std::sort(rates.begin(), rates.end());
  constexpr size_t kMultipliers = 12;
  for (size_t k = 0; k <= kMultipliers && !rates.empty(); ++k) multipliers_.push_back(rates[std::min(rates.size() - 1, k * rates.size() / kMultipliers)]);
  if (!rates.empty()) multipliers_.insert(multipliers_.end(), {rates.front() / 2, rates.back() * 2});
  std::sort(multipliers_.begin(), multipliers_.end());
  multipliers_.erase(std::unique(multipliers_.begin(), multipliers_.end()), multipliers_.end());
  for (double lambda : multipliers_) {
    std::vector<double> sums(n + 1, 0);
    for (uint32_t i = 0; i < n; ++i) {
      double least = choices[i].empty() ? 0 : 1e300;
      for (const Choice &c : choices[i]) least = std::min(least, c.cost + lambda * c.bytes);
      sums[i + 1] = sums[i] + least;
    }
    hull_sums_.push_back(std::move(sums));
  }
}

double Intervals::bound(uint32_t s, uint32_t t, Bytes room, uint32_t option) const {
  return bound_of(s, t, room - model_.segments[t].options[option].leaf.front().m);
}

double Intervals::bound_of(uint32_t s, uint32_t t, Bytes left) const {
  if (left < 0) return 1e300;
  double best = 0;
  for (size_t k = 0; k < multipliers_.size(); ++k)
    best = std::max(best, hull_sums_[k][t] - hull_sums_[k][s] - multipliers_[k] * static_cast<double>(left));
  return best - 1e-3;
}

void Intervals::make_floors() {
  constexpr uint64_t kPairs = 8'000'000;
  const uint32_t n = model_.size();
  longest_ = uint64_t{n} * n / 2 <= kPairs ? n : static_cast<uint32_t>(kPairs / n);
  std::vector<Bytes> least(n, kNoRoom);
  for (uint32_t t = 0; t < n; ++t)
    for (const Option &o : model_.segments[t].options) least[t] = std::min(least[t], o.leaf.front().m);
  auto floors = std::make_shared<std::vector<std::vector<float>>>(n);
  for (uint32_t s = 0; s < n; ++s) {
    std::vector<float> &row = (*floors)[s];
    row.push_back(0);
    const Bytes room = room_ - (model_.segments[s].reads_input ? model_.x[s] : 0);
    for (uint32_t t = s + 1; t < n && row.size() < longest_ && !model_.segments[t - 1].wall; ++t) {
      const double bound = std::min(bound_of(s, t, room - least[t]), 1e30);
      row.push_back(std::nextafter(static_cast<float>(bound), 0.0f));
    }
  }
  floors_ = std::move(floors);
}

void Intervals::share_floors(const Intervals &other) {
  room_ = other.room_;
  longest_ = other.longest_;
  floors_ = other.floors_;
}

uint32_t Intervals::known_block(uint32_t s, uint32_t t) const {
  const uint32_t length = t - s + 1;
  if (twins_.length[s] < length) return kEmpty;
  const uint32_t other = twins_.at[s] + length - 1;
  return length - 1 < columns_[other].size() ? columns_[other][length - 1] : kEmpty;
}

// A stretch that is looked up at its twin's place is wanted there.
void Intervals::share_limits(CostLimits *limits) const {
  for (uint32_t s = model_.size(); s-- > 0;) {
    const std::vector<Ticks> &row = limits->rows[s];
    const size_t length = std::min<size_t>(twins_.length[s], row.size());
    if (length == 0) continue;
    std::vector<Ticks> &other = limits->rows[twins_.at[s]];
    if (other.size() < length) other.resize(length, -1);
    for (size_t k = 0; k < length; ++k) other[k] = std::max(other[k], row[k]);
  }
}

bool Intervals::compute(Bytes room, Ticks limit, CostLimits limits, Work *work) {
  const uint32_t n = model_.size();
  if (room != room_ || floors_ == nullptr) {
    room_ = room;
    make_floors();
  }
  limit_ = limit;
  limits_ = limits;
  columns_.assign(n, {});
  slices_.clear();
  points_.clear();
  if (limit < 0) return true;
  share_limits(&limits);
  std::vector<uint32_t> usable;
  for (uint32_t t = 0; t < n; ++t) {
    usable.clear();
    for (uint32_t o = 0; o < option_count(t); ++o)
      if (model_.segments[t].options[o].leaf.front().m <= room_) usable.push_back(o);
    for (uint32_t s = t + 1; s-- > 0;) {
      if (s < t && model_.segments[s].wall) break;
      cut_ = s == t ? limit : std::min(limit, limits.of(s, t));
      if (cut_ < 0) break;
      wanted_.clear();
      for (uint32_t o : usable)
        if (bound(s, t, room_, o) <= static_cast<double>(cut_)) wanted_.push_back(o);
      if (wanted_.empty()) break;
      work->spent += 1 + usable.size() / 8;
      const uint32_t known = twins_.length[s] >= t - s + 1 ? known_block(s, t) : kEmpty;
      if (twins_.length[s] >= t - s + 1) {
        columns_[t].push_back(known);
        continue;
      }
      columns_[t].push_back(kEmpty);
      compute_block(s, t, work);
      if (work->out()) return false;
    }
  }
  return true;
}

bool Intervals::compute_block(uint32_t s, uint32_t t, Work *work) {
  const uint32_t options = option_count(t), starts = static_cast<uint32_t>(model_.segments[s].starts.size());
  if (candidates_.size() < options) {
    candidates_.resize(options);
    sieves_.resize(options);
  }
  const auto block = static_cast<uint32_t>(slices_.size());
  slices_.resize(block + static_cast<size_t>(starts) * sides_[s] * options);
  bool any = false;
  for (uint32_t start = 0; start < (s == t ? 1 : starts); ++start)
    for (uint32_t side = 0; side < sides_[s]; ++side) {
      for (uint32_t o = 0; o < options; ++o) {
        candidates_[o].clear();
        sieves_[o].begin(0, cut_);
      }
      const Bytes cap = room_ - (side == 0 ? model_.x[s] : 0);
      if (s == t) {
        for (uint32_t o : wanted_) {
          const Option &option = model_.segments[s].options[o];
          for (const Point &p : side == 0 ? option.leaf : option.leaf_inside)
            if (p.m <= cap && p.c <= cut_) candidates_[o].push_back(p);
        }
      } else {
        split_at_start(s, t, start, side, work);
        splits_behind(s, t, start, side, work);
      }
      for (uint32_t o = 0; o < options; ++o) {
        Slice slice;
        take_frontier(&candidates_[o], &slice);
        any |= slice.count != 0;
        slices_[block + (start * sides_[s] + side) * options + o] = slice;
      }
    }
  if (any) columns_[t].back() = block;
  else slices_.resize(block);
  return any;
}

void Intervals::add_split(const Split &split, uint32_t t, uint32_t option, const Option &stored, Work *work) {
  Bytes shift = 0;
  const Front right = this->right(split.next, split.stays, t, option, &shift);
  if (right.count == 0 || split.cost + split.left[split.left_count - 1].c + right.cheapest().c > cut_) return;
  shift += split.outside;
  const Bytes floor = split.floor + model_.g[t + 1] + stored.bytes;
  if (floor > split.cap) return;
  std::vector<Point> &out = candidates_[option];
  Sieve &sieve = sieves_[option];
  uint32_t a = split.left_count, b = right.count;
  uint64_t steps = 1;
  while (a > 0 && b > 0) {
    const Ticks cost = split.cost + split.left[a - 1].c + right.begin[b - 1].c;
    if (cost > cut_) break;
    const Bytes left_bytes = split.left[a - 1].m, right_bytes = right.begin[b - 1].m + shift;
    const Bytes bytes = std::max(floor, std::max(left_bytes, right_bytes));
    if (bytes <= split.cap && sieve.admits({bytes, cost})) out.push_back({bytes, cost});
    ++steps;
    if (bytes == floor) break;
    if (left_bytes >= right_bytes) --a;
    if (right_bytes >= left_bytes) --b;
  }
  work->spent += steps;
}

void Intervals::split_at_start(uint32_t s, uint32_t t, uint32_t start, uint32_t side, Work *work) {
  const Segment &segment = model_.segments[s];
  const Start &from = segment.starts[start];
  const Bytes x = side == 1 ? model_.x[s] : 0;
  for (size_t q = 0; q < segment.options.size(); ++q) {
    const Option &o = segment.options[q];
    const Run &run = from.run[q];
    if (run.cost > cut_) continue;
    const bool gone = side == 1 && o.gone;
    const std::vector<Point> &leaf = side == 1 && !gone ? o.leaf_inside : o.leaf;
    Split split{run.cost, x + from.extra + sticky(s, t) + run.bytes, (gone ? 0 : x) + o.bytes, s + 1, o.k, leaf.data(),
                static_cast<uint32_t>(leaf.size()), room_ - (side == 0 ? model_.x[s] : 0)};
    for (uint32_t option : wanted_) add_split(split, t, option, model_.segments[t].options[option], work);
  }
  work->spent += segment.options.size() / 4;
}

void Intervals::splits_behind(uint32_t s, uint32_t t, uint32_t start, uint32_t side, Work *work) {
  const Segment &segment = model_.segments[s];
  const Start &from = segment.starts[start];
  const Bytes x = side == 1 ? model_.x[s] : 0;
  uint64_t looked = 0;
  for (uint32_t to = 0; to < segment.starts.size(); ++to) {
    if (from.jump[to].cost > cut_) continue;
    const Bytes extra = segment.starts[to].extra, live = x + extra + sticky(s, t);
    Bytes floor = x + from.extra + sticky(s, t) + from.jump[to].bytes;
    for (uint32_t j = s + 1; j < t; ++j) {
      const Segment &at = model_.segments[j];
      const Ticks cost = from.jump[to].cost + jumps_[j] - jumps_[s + 1];
      if (cost > cut_) break;
      for (uint32_t q = 0; q < at.options.size(); ++q) {
        const Option &o = at.options[q];
        const Run &run = at.starts[0].run[q];
        if (run.cost > cut_ - cost || !may_jump_to(o)) continue;
        const Front left = front(s, to, side, j, q);
        if (left.count == 0 || cost + run.cost + left.cheapest().c > cut_) continue;
        const Split split{cost + run.cost, std::max(floor, live + model_.x[j] + run.bytes), x + extra + sticky(s, j) + o.bytes, j + 1, o.k,
                          left.begin, left.count, room_ - (side == 0 ? model_.x[s] : 0)};
        for (uint32_t option : wanted_) add_split(split, t, option, model_.segments[t].options[option], work);
        looked += wanted_.size();
      }
      looked += at.options.size();
      if (at.wall) break;
      floor = std::max(floor, live + model_.x[j] + at.starts[0].jump[0].bytes);
    }
  }
  work->spent += looked / 8;
}

// Sorts, and leaves only what is cheaper than everything of fewer bytes.
void Intervals::take_frontier(std::vector<Point> *candidates, Slice *out) {
  out->begin = static_cast<uint32_t>(points_.size());
  out->count = 0;
  std::vector<Point> &c = *candidates;
  if (c.empty()) return;
  constexpr size_t kFew = 24;
  if (c.size() > kFew && static_cast<uint64_t>(cut_) < c.size() * 8) {  // by cost: a bucket each
    best_bytes_.assign(static_cast<size_t>(cut_) + 1, kNoRoom);
    for (const Point &p : c) best_bytes_[static_cast<size_t>(p.c)] = std::min(best_bytes_[static_cast<size_t>(p.c)], p.m);
    Bytes least = kNoRoom;
    const size_t before = points_.size();
    for (Ticks cost = 0; cost <= cut_; ++cost)
      if (best_bytes_[static_cast<size_t>(cost)] < least) {
        least = best_bytes_[static_cast<size_t>(cost)];
        points_.push_back({least, cost});
      }
    std::reverse(points_.begin() + static_cast<std::ptrdiff_t>(before), points_.end());
  } else {
    std::sort(c.begin(), c.end(), [](const Point &a, const Point &b) { return a.m != b.m ? a.m < b.m : a.c < b.c; });
    Ticks least = kNever;
    for (const Point &p : c)
      if (p.c < least) {
        least = p.c;
        points_.push_back(p);
      }
  }
  out->count = static_cast<uint32_t>(points_.size() - out->begin);
}

}  // namespace ckpt::plan::exact
