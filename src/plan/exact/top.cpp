#include "plan/exact/top.h"

#include <algorithm>
#include <cmath>

#include "plan/exact/trace.h"

namespace ckpt::plan::exact {

namespace {
constexpr double kInfinite = 1e300;
constexpr double kSlack = 1e-3;  // of a tick: what sums of doubles may be off
}  // namespace

bool Top::prepare(Ticks most) {
  most_ = most;
  const uint32_t n = model_.size();
  jumps_.assign(n + 1, 0);
  for (uint32_t i = 0; i < n; ++i) {
    const Ticks cost = model_.segments[i].first.jump[0].cost;
    jumps_[i + 1] = jumps_[i] + (cost == kNever ? 0 : cost);
  }
  edges_.clear();
  first_edge_.assign(2 * n + 1, 0);
  for (uint32_t p = 0; p < n; ++p)
    for (uint32_t side = 0; side < 2; ++side) {
      first_edge_[2 * p + side] = static_cast<uint32_t>(edges_.size());
      if (side < in_.sides(p)) make_edges(p, side);
    }
  first_edge_[2 * n] = static_cast<uint32_t>(edges_.size());
  work_->spent += edges_.size();
  maximise();
  return lower_ < kInfinite / 2;
}

void Top::make_edges(uint32_t p, uint32_t side) {
  const uint32_t n = model_.size();
  const Segment &s = model_.segments[p];
  const Bytes x = side == 1 ? model_.x[p] : 0, cap = room_ - (side == 0 ? model_.x[p] : 0);
  for (uint32_t q = 0; q < s.options.size(); ++q) {
    const Option &o = s.options[q];
    if (s.first.run[q].cost == kNever) continue;
    const bool gone = side == 1 && o.gone;
    const std::vector<Point> &leaf = side == 1 && !gone ? o.leaf_inside : o.leaf;
    Edge e{2 * n, kNoStart, p, q, s.first.run[q].cost, model_.g[n] + x + s.first.run[q].bytes, (gone ? 0 : x) + o.bytes, leaf.data(), static_cast<uint32_t>(leaf.size())};
    if (p + 1 < n) {
      e.to = place(p + 1, o.k);
      if (model_.segments[p + 1].reads_input && !o.k) e.outside += model_.x[p + 1];
    }
    if (e.floor <= cap && leaf.front().m <= cap) edges_.push_back(e);
  }
  for (uint32_t start = 0; start < s.first.jump.size(); ++start) {
    const Run &jump = s.first.jump[start];
    if (jump.cost == kNever) continue;
    const Bytes extra = s.starts[start].extra;
    Bytes floor = model_.g[n] + x + jump.bytes;
    for (uint32_t j = p + 1; j < n; ++j) {
      const Bytes live = model_.g[n] + x + extra + in_.sticky(p, j) + model_.x[j];
      if (floor > cap) break;
      if (in_.first_known(j) <= p) add_edges_to(p, side, start, j, jump.cost + jumps_[j] - jumps_[p + 1], floor, live);
      if (model_.segments[j].wall) break;
      floor = std::max(floor, live + model_.segments[j].first.jump[0].bytes);
    }
  }
}

void Top::add_edges_to(uint32_t p, uint32_t side, uint32_t start, uint32_t j, Ticks cost, Bytes floor, Bytes live) {
  const uint32_t n = model_.size();
  const Segment &at = model_.segments[j];
  const Bytes x = side == 1 ? model_.x[p] : 0, cap = room_ - (side == 0 ? model_.x[p] : 0);
  for (uint32_t q = 0; q < at.options.size(); ++q) {
    const Option &o = at.options[q];
    const Run &run = at.first.run[q];
    if (run.cost == kNever || !in_.may_jump_to(o)) continue;
    const Front left = in_.front(p, start, side, j, q);
    if (left.count == 0) continue;
    Edge e{2 * n, start, j, q, cost + run.cost, std::max(floor, live + run.bytes), x + model_.segments[p].starts[start].extra + in_.sticky(p, j) + o.bytes, left.begin, left.count};
    if (j + 1 < n) {
      e.to = place(j + 1, o.k);
      if (model_.segments[j + 1].reads_input && !o.k) e.outside += model_.x[j + 1];
    }
    if (e.floor <= cap && left.begin[0].m <= cap) edges_.push_back(e);
  }
}

// Shortest paths from the start where a byte costs lambda, and what lies outside at the end of the best one. Parts that are
// not known have edges too, at what they cost at least.
void Top::evaluate(Lagrangian *l) const {
  const uint32_t n = model_.size(), from = place(0, false);
  l->from_start.assign(2 * n + 1, kInfinite);
  std::vector<Bytes> bytes(2 * n + 1, 0);
  bytes[from] = model_.segments[0].reads_input ? model_.x[0] : 0;
  l->from_start[from] = l->lambda * static_cast<double>(bytes[from]);
  std::vector<double> arrival(n, kInfinite), entry(n, kInfinite);  // at the end of an unknown part, and into its jump
  std::vector<Bytes> arrival_bytes(n, 0), entry_bytes(n, 0);
  uint32_t block = 0;      // behind the latest wall
  uint32_t tail = kNoStart;  // the best of the entries that are too far away for a pair
  const auto relax = [&](uint32_t to, double cost, Bytes more) {
    if (cost >= l->from_start[to]) return;
    l->from_start[to] = cost;
    bytes[to] = more;
  };
  for (uint32_t p = 0; p < n; ++p) {
    if (p > 0 && model_.segments[p - 1].wall) block = p, tail = kNoStart;
    if (p >= block + in_.longest()) {
      const uint32_t far = p - in_.longest();
      if (tail == kNoStart || entry[far] + in_.tail_cost(far) < entry[tail] + in_.tail_cost(tail)) tail = far;
      if (entry[tail] + in_.tail_cost(tail) < arrival[p]) {
        arrival[p] = entry[tail] + in_.tail_cost(tail);
        arrival_bytes[p] = entry_bytes[tail];
      }
    }
    const Segment &s = model_.segments[p];
    for (uint32_t q = 0; q < s.options.size() && arrival[p] < kInfinite; ++q)
      if (s.first.run[q].cost != kNever && in_.may_jump_to(s.options[q]))
        relax(p + 1 == n ? 2 * n : place(p + 1, s.options[q].k), arrival[p] + landing_cost(p, q, l->lambda), arrival_bytes[p] + landing_bytes(p, q));
    for (uint32_t side = 0; side < in_.sides(p); ++side) {
      const uint32_t here = 2 * p + side;
      const double base = l->from_start[here];
      if (base >= kInfinite) continue;
      for (uint32_t k = first_edge_[here]; k < first_edge_[here + 1]; ++k) {
        const Edge &e = edges_[k];
        const Bytes more = e.to == 2 * n ? std::max(e.floor, e.left[0].m) : e.outside;
        relax(e.to, base + static_cast<double>(e.least()) + l->lambda * static_cast<double>(more), bytes[here] + more);
      }
      for (uint32_t start = 0; start < s.first.jump.size(); ++start) {
        if (s.first.jump[start].cost == kNever) continue;
        const double cost = base + jump_cost(p, side, start, l->lambda);
        if (cost >= entry[p]) continue;
        entry[p] = cost;
        entry_bytes[p] = bytes[here] + (side == 1 ? model_.x[p] : 0) + s.starts[start].extra - in_.sticky(0, p);
      }
    }
    for (uint32_t j = p + 1; entry[p] < kInfinite && j < in_.pair_end(p); ++j)
      if (const double cost = entry[p] + in_.unknown_cost(p, j); cost < arrival[j]) {
        arrival[j] = cost;
        arrival_bytes[j] = entry_bytes[p];
      }
  }
  l->value = l->from_start[2 * n] - l->lambda * static_cast<double>(room_);
  l->slope = static_cast<double>(bytes[2 * n] - room_);
  l->dead = kInfinite;
  for (uint32_t j = 1; j < n && !l->to_end.empty(); ++j)
    if (arrival[j] < kInfinite) l->dead = std::min(l->dead, arrival[j] + landing_to_end(j, *l) - l->lambda * static_cast<double>(room_));
}

// The cheapest way from a jump's last segment to the end.
double Top::landing_to_end(uint32_t j, const Lagrangian &l) const {
  const Segment &s = model_.segments[j];
  double best = kInfinite;
  for (uint32_t q = 0; q < s.options.size(); ++q)
    if (s.first.run[q].cost != kNever && in_.may_jump_to(s.options[q]))
      best = std::min(best, landing_cost(j, q, l.lambda) + (j + 1 == model_.size() ? 0 : l.to_end[place(j + 1, s.options[q].k)]));
  return best;
}

void Top::evaluate_back(Lagrangian *l) const {
  const uint32_t n = model_.size();
  l->to_end.assign(2 * n + 1, kInfinite);
  l->to_end[2 * n] = 0;
  std::vector<double> landing(n, kInfinite);
  double far = kInfinite;  // the best landing beyond all pairs
  for (uint32_t p = n; p-- > 0;) {
    const Segment &s = model_.segments[p];
    const bool capped = p + in_.longest() < n && in_.pair_end(p) > p;
    if (s.wall) far = kInfinite;
    double part = kInfinite;
    for (uint32_t j = p + 1; j < in_.pair_end(p); ++j) part = std::min(part, landing[j] + in_.unknown_cost(p, j));
    if (capped) {
      const uint32_t enters = p + in_.longest();
      bool wall = false;
      for (uint32_t i = p; i < enters && !wall; ++i) wall = model_.segments[i].wall;
      if (!wall) far = std::min(far, landing[enters]);
      part = std::min(part, far + in_.tail_cost(p));
    }
    for (uint32_t side = 0; side < in_.sides(p); ++side) {
      const uint32_t here = 2 * p + side;
      double best = kInfinite;
      for (uint32_t k = first_edge_[here]; k < first_edge_[here + 1]; ++k) {
        const Edge &e = edges_[k];
        const Bytes more = e.to == 2 * n ? std::max(e.floor, e.left[0].m) : e.outside;
        best = std::min(best, l->to_end[e.to] + static_cast<double>(e.least()) + l->lambda * static_cast<double>(more));
      }
      for (uint32_t start = 0; start < s.first.jump.size() && part < kInfinite; ++start)
        if (s.first.jump[start].cost != kNever) best = std::min(best, part + jump_cost(p, side, start, l->lambda));
      l->to_end[here] = best;
    }
    landing[p] = landing_to_end(p, *l);
  }
}

// What a jump over everything saves of bytes, per tick.
double Top::typical_price() const {
  double bytes = 1, cost = 0;
  for (const Segment &s : model_.segments) {
    Bytes most = 0;
    for (const Option &o : s.options) most = std::max(most, o.bytes);
    bytes += static_cast<double>(most);
    if (s.first.jump[0].cost != kNever) cost += static_cast<double>(s.first.jump[0].cost);
  }
  return std::max(cost, 1.0) / bytes;
}

// The dual is concave and piecewise linear: cut the two tangents until they meet on it.
void Top::maximise() {
  Lagrangian low, high;
  low.lambda = 0;
  evaluate(&low);
  lower_ = std::max(0.0, low.value);
  Lagrangian best = low;
  if (low.value < kInfinite / 2 && low.slope > 0) {
    high.lambda = typical_price() / 16;
    for (int k = 0; k < 100; ++k) {
      evaluate(&high);
      if (high.value > best.value) best = high;
      if (high.slope <= 0) break;
      low = high;
      high.lambda *= 4;
    }
    for (int k = 0; k < 24 && high.slope < 0; ++k) {
      Lagrangian middle;
      middle.lambda = (high.value - low.value + low.slope * low.lambda - high.slope * high.lambda) / (low.slope - high.slope);
      if (!(middle.lambda > low.lambda && middle.lambda < high.lambda)) break;
      evaluate(&middle);
      const double expected = low.value + low.slope * (middle.lambda - low.lambda);
      if (middle.value > best.value) best = middle;
      if (middle.slope == 0 || middle.value >= expected - 1e-6 * (1 + std::fabs(expected))) break;
      if (middle.slope > 0) low = middle;
      else high = middle;
    }
  }
  work_->spent += 8 * edges_.size();
  lower_ = std::max(0.0, best.value - kSlack);
  conclusive_ = -kInfinite;
  used_.clear();
  for (double factor : {0.85, 1.0, 1.15}) {
    Lagrangian l;
    l.lambda = best.lambda * factor;
    evaluate_back(&l);
    evaluate(&l);
    conclusive_ = std::max(conclusive_, l.dead - kSlack);
    used_.push_back(std::move(l));
    if (best.lambda == 0) break;
  }
  const double most = static_cast<double>(most_) + 1;
  lower_ = std::min(lower_, most);
  conclusive_ = std::min(conclusive_, most);
}

// A part of p .. j lies behind a jump over p .. j: what the cheapest path with that jump leaves for it.
CostLimits Top::limits(Ticks most) const {
  const uint32_t n = model_.size();
  CostLimits limits;
  limits.rows.resize(n);
  std::vector<std::vector<double>> ways_in, ways_out;
  for (const Lagrangian &l : used_) {
    std::vector<double> in(n, kInfinite), out(n, kInfinite);
    for (uint32_t p = 0; p < n; ++p) {
      const Segment &s = model_.segments[p];
      for (uint32_t side = 0; side < in_.sides(p); ++side)
        for (uint32_t start = 0; start < s.first.jump.size(); ++start)
          if (s.first.jump[start].cost != kNever)
            in[p] = std::min(in[p], l.from_start[2 * p + side] + jump_cost(p, side, start, l.lambda));
      out[p] = landing_to_end(p, l) - l.lambda * static_cast<double>(room_);
    }
    ways_in.push_back(std::move(in));
    ways_out.push_back(std::move(out));
  }
  const double top = static_cast<double>(most) + kSlack;
  std::vector<double> row(n), before(n, -1);
  for (uint32_t s = 0; s < n; ++s) {
    uint32_t end = s;
    while (end + 1 < n && !model_.segments[end].wall && end + 1 - s < in_.longest()) ++end;
    double inside = -1;  // the row is filled from its end: what contains a stretch is known before it
    size_t wanted = 0;
    for (uint32_t t = end; t > s; --t) {
      double least = 0;
      for (size_t k = 0; k < used_.size(); ++k) least = std::max(least, ways_in[k][s] + ways_out[k][t]);
      const double left = top - least;
      inside = std::max({inside, before[t], left >= in_.floor(s, t) ? left : -1.0});
      row[t] = inside;
      if (inside >= 0 && wanted == 0) wanted = t - s + 1;
    }
    row[s] = std::max(inside, 0.0);
    limits.rows[s].resize(std::max<size_t>(wanted, 1));
    for (size_t k = 0; k < limits.rows[s].size(); ++k) limits.rows[s][k] = static_cast<Ticks>(std::min(row[s + k], 1e18));
    for (uint32_t t = s; t <= end; ++t) before[t] = row[t];
    if (model_.segments[s].wall) std::fill(before.begin(), before.end(), -1);
  }
  return limits;
}

// Into a jump over p ..: to be met by landing_cost at its end.
double Top::jump_cost(uint32_t p, uint32_t side, uint32_t start, double lambda) const {
  const Segment &s = model_.segments[p];
  const Bytes out = (side == 1 ? model_.x[p] : 0) + s.starts[start].extra - in_.sticky(0, p);
  return static_cast<double>(s.first.jump[start].cost - jumps_[p + 1]) + lambda * static_cast<double>(out);
}

// (At the end of the chain the sticky bytes of the jump are inside the part's own.)
double Top::landing_cost(uint32_t j, uint32_t option, double lambda) const {
  const Segment &at = model_.segments[j];
  return static_cast<double>(jumps_[j] + at.first.run[option].cost) + lambda * static_cast<double>(landing_bytes(j, option));
}

Bytes Top::landing_bytes(uint32_t j, uint32_t option) const {
  const Option &o = model_.segments[j].options[option];
  if (j + 1 == model_.size()) return o.leaf.front().m;
  return in_.sticky(0, j) + o.bytes + (model_.segments[j + 1].reads_input && !o.k ? model_.x[j + 1] : 0);
}

// No way from the start to here leaves these bytes at less cost.
double Top::prefix_cost(uint32_t place, Bytes bytes) const {
  double cost = 0;
  for (const Lagrangian &l : used_) cost = std::max(cost, l.from_start[place] - l.lambda * static_cast<double>(room_ - bytes));
  return std::ceil(cost - kSlack);
}

// What labels of a place can cost.
void Top::begin_sieve(uint32_t here, Ticks most) {
  double low = 0, before = 0;
  for (const Lagrangian &l : used_) {
    const double room = l.lambda * static_cast<double>(room_);
    if (l.to_end[here] < kInfinite / 2) low = std::max(low, l.to_end[here] - room);
    if (l.from_start[here] < kInfinite / 2) before = std::max(before, l.from_start[here] - room);
  }
  // (Places that nothing leads to or from have bounds beyond all costs.)
  const double most_here = std::min(static_cast<double>(most), 4 * lower_ + 1), high = std::max(0.0, most_here - before);
  const Ticks least = static_cast<Ticks>(std::min(low, most_here));
  sieve_.begin(least, std::max(least, static_cast<Ticks>(high)));
}

void Top::labels_of(uint32_t here, Ticks most, std::vector<Point> *candidates) {
  const uint32_t n = model_.size(), p = here / 2;
  const Bytes cap = room_ - (here % 2 == 0 ? model_.x[p] : 0);
  static const Point kEnd{0, 0};
  const double limit = static_cast<double>(most) + kSlack;
  for (uint32_t k = first_edge_[here]; k < first_edge_[here + 1]; ++k) {
    const Edge &e = edges_[k];
    const bool last = e.to == 2 * n;
    const Point *right = last ? &kEnd : labels_[e.to].data();
    auto b = last ? 1u : static_cast<uint32_t>(labels_[e.to].size());
    if (b == 0) continue;
    const Bytes added = last ? std::max(e.floor, e.left[0].m) : e.outside;
    bool hopeless = false;
    for (const Lagrangian &l : used_)
      hopeless |= l.from_start[here] + static_cast<double>(e.least()) + l.lambda * static_cast<double>(added - room_) + l.to_end[e.to] > limit;
    if (hopeless) continue;
    const Bytes outside = last ? 0 : e.outside;
    uint32_t a = e.left_count;
    uint64_t steps = 1;
    while (a > 0 && b > 0) {
      const Bytes left_bytes = e.left[a - 1].m, right_bytes = right[b - 1].m + outside;
      const Bytes bytes = std::max(e.floor, std::max(left_bytes, right_bytes));
      const Ticks cost = e.cost + e.left[a - 1].c + right[b - 1].c;
      if (cost > most) break;
      if (bytes <= cap && sieve_.admits({bytes, cost}) && static_cast<double>(cost) + prefix_cost(here, bytes) <= limit) candidates->push_back({bytes, cost});
      ++steps;
      if (bytes == e.floor) break;
      if (left_bytes >= right_bytes) --a;
      if (right_bytes >= left_bytes) --b;
    }
    work_->spent += steps;
  }
}

// A quarter of them the most promising; the others spread evenly over what they cost, of each part the one of least bytes.
void Top::thin(uint32_t width, std::vector<Point> *labels) const {
  const size_t count = labels->size(), promising = width / 4, parts = width - promising;
  if (count <= width) return;
  const Lagrangian &l = used_[used_.size() / 2];
  std::vector<std::pair<double, uint32_t>> order;
  for (uint32_t k = 0; k < count; ++k) order.push_back({static_cast<double>((*labels)[k].c) + l.lambda * static_cast<double>((*labels)[k].m), k});
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(promising), order.end());
  std::vector<uint8_t> stays(count, 0);
  for (size_t k = 0; k < promising; ++k) stays[order[k].second] = 1;
  const Ticks low = labels->back().c;
  const double range = static_cast<double>(labels->front().c - low) + 1;
  size_t part = SIZE_MAX;
  for (size_t k = 0; k < count; ++k) {
    const auto at = static_cast<size_t>(static_cast<double>((*labels)[k].c - low) * static_cast<double>(parts - 1) / range);
    if (at != part) stays[k] = 1;
    part = at;
  }
  stays[count - 1] = 1;
  size_t kept = 0;
  for (size_t k = 0; k < count; ++k)
    if (stays[k]) (*labels)[kept++] = (*labels)[k];
  labels->resize(kept);
}

bool Top::search(Ticks most, uint32_t width, Found *found) {
  const uint32_t n = model_.size();
  labels_.assign(2 * n + 1, {});
  label_count_ = 0;
  std::vector<Point> candidates;
  for (uint32_t p = n; p-- > 0;)
    for (uint32_t side = 0; side < in_.sides(p); ++side) {
      const uint32_t here = 2 * p + side;
      candidates.clear();
      begin_sieve(here, most);
      labels_of(here, most, &candidates);
      std::sort(candidates.begin(), candidates.end(), [](const Point &a, const Point &b) { return a.m != b.m ? a.m < b.m : a.c < b.c; });
      work_->spent += candidates.size();
      Ticks least = kNever;
      for (const Point &c : candidates)
        if (c.c < least) {
          least = c.c;
          labels_[here].push_back(c);
        }
      if (width != 0) thin(width, &labels_[here]);
      label_count_ += labels_[here].size();
      if (work_->out()) return false;
    }
  const std::vector<Point> &top = labels_[place(0, false)];
  if (top.empty()) return false;
  found->cost = top.back().c;
  found->load = top.back().m + (model_.segments[0].reads_input ? model_.x[0] : 0);
  found->steps.clear();
  trace(found);
  return true;
}

void Top::trace(Found *found) const {
  const uint32_t n = model_.size();
  Tracer tracer(in_, &found->steps);
  uint32_t here = place(0, false);
  bool stays = false;
  Point label = labels_[here].back();
  std::vector<Part> parts;  // what the edges left to the left, to be done from the end of the chain to its begin
  while (here != 2 * n) {
    const Edge *taken = nullptr;
    Point left{}, right{};
    for (uint32_t k = first_edge_[here]; k < first_edge_[here + 1] && taken == nullptr; ++k) {
      const Edge &e = edges_[k];
      if (e.floor > label.m) continue;
      for (uint32_t a = 0; a < e.left_count && taken == nullptr; ++a) {
        if (e.left[a].m > label.m) break;
        const Ticks rest = label.c - e.cost - e.left[a].c;
        if (rest < 0) continue;
        if (e.to == 2 * n) {
          if (rest == 0) taken = &e, left = e.left[a], right = {0, 0};
          continue;
        }
        for (const Point &c : labels_[e.to])
          if (c.c == rest && c.m + e.outside <= label.m) {
            taken = &e;
            left = e.left[a];
            right = c;
            break;
          }
      }
    }
    if (taken == nullptr) break;  // cannot be: every label came from an edge
    const uint32_t p = here / 2, side = here % 2, j = taken->segment;
    const Option &o = model_.segments[j].options[taken->option];
    if (taken->start == kNoStart) {
      const bool gone = side == 1 && o.gone;
      tracer.run(p, kNoStart, taken->option);
      if (gone) tracer.free(p);
      parts.push_back({p, 0, side, p, taken->option, stays, gone, left});
    } else {
      tracer.jump(p, j, kNoStart, taken->start);
      tracer.run(j, kNoStart, taken->option);
      tracer.free(j);
      parts.push_back({p, taken->start, side, j, taken->option, stays, false, left});
    }
    if (j + 1 == n && !o.k) tracer.free(n);
    here = taken->to;
    stays = o.k;
    label = right;
  }
  for (size_t k = parts.size(); k-- > 0;) tracer.part(parts[k]);
}

}  // namespace ckpt::plan::exact
