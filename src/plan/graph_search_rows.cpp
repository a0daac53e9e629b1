#include "plan/graph_search_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ckpt::plan {

Rows::Rows(const Trial &trial) : trial_(trial), graph_(trial.graph()), candidates_(trial.graph(), trial.gradients()) {
  const size_t weight = (graph_.item_bytes.size() + 3 * size_t{graph_.node_count()}) * (trial.in_flight() > 1 ? size_t{3} * trial.in_flight() + 1 : 1);
  const size_t least = std::clamp<size_t>(5 * kWork / 2 / std::max<size_t>(weight, 1), kLeastTries, 40);
  tries_ = static_cast<uint32_t>(std::clamp<size_t>(kWork / std::max<size_t>(weight, 1), least, kMostTries));
}

Status Rows::try_one(const Family &family, uint32_t member, Point *point) const {
  Result<Program> program = write_step(trial_.graph(), trial_.gradients(), candidates_.policy(family, member));
  if (!program.ok()) return program.status();
  Simulation s;
  CKPT_TRY(trial_.simulate(*program, &s));
  point->family = family;
  point->member = member;
  point->ticks = trial_.ticks(s);
  point->recompute_count = s.recompute_count;
  point->height = trial_.height(s);
  point->peak = s.peak;
  return CKPT_OK;
}

Status Rows::add(const Family &family, uint32_t member) {
  if (found_.tried(family, member)) return CKPT_OK;
  Point p;
  CKPT_TRY(try_one(family, member, &p));
  found_.add(p);
  return CKPT_OK;
}

// Lengths of groups: all of them, or each about half as long again as the one before, or some of those.
std::vector<uint32_t> Rows::groups() const {
  const uint32_t n = graph_.node_count();
  if (tries_ == kLeastTries) return {2, std::max(3u, sqrt_group(n) / 4), sqrt_group(n)};
  const bool all = uint64_t{6} * n <= tries_;
  std::vector<uint32_t> k;
  for (uint32_t g = 2; g < n; g = all ? g + 1 : g + std::max(1u, g / 2)) k.push_back(g);
  if (const uint32_t s = sqrt_group(n); s > 1 && s < n) k.push_back(s);
  std::sort(k.begin(), k.end());
  k.erase(std::unique(k.begin(), k.end()), k.end());
  const size_t most = std::max<size_t>(3, tries_ / 6);
  if (k.size() <= most) return k;
  std::vector<uint32_t> some;
  for (size_t j = 0; j < most; ++j) some.push_back(k[j * (k.size() - 1) / (most - 1)]);
  return some;
}

Status Rows::look_at_corners() {
  CKPT_TRY(add(candidates_.family(1, Again::boundaries, Order::from_end), graph_.node_count()));
  CKPT_TRY(add(candidates_.family(1, Again::boundaries, Order::by_rate), 0));
  CKPT_TRY(add(candidates_.family(1, Again::boundaries, Order::by_rate), candidates_.size(Order::by_rate) - 1));
  if (candidates_.size(Order::from_end) <= tries_ / 8)
    for (uint32_t m = 0; m < candidates_.size(Order::from_end); ++m) CKPT_TRY(add(candidates_.family(1, Again::boundaries, Order::from_end), m));
  if (tries_ >= 60)
    for (uint32_t m = 0; m < candidates_.size(Order::all_but); ++m) CKPT_TRY(add(candidates_.family(1, Again::boundaries, Order::all_but), m));
  for (uint32_t m = 0; m < candidates_.size(Order::each); ++m)
    for (Again again : {Again::everything, Again::boundaries, Again::nothing}) CKPT_TRY(add(candidates_.family(1, again, Order::each), m));
  for (uint32_t g : groups())
    for (Again again : {Again::everything, Again::boundaries, Again::halves, Again::nothing}) {
      if ((again == Again::boundaries && g < 3) || (again == Again::halves && g < 5) || (again == Again::nothing && g > 16 + 4000 / graph_.node_count())) continue;
      if (tries_ == kLeastTries && (again == Again::halves || again == Again::nothing || (again == Again::boundaries && g != sqrt_group(graph_.node_count())))) continue;
      CKPT_TRY(add(candidates_.family(g, again, Order::by_rate), 0));
    }
  if (graph_.node_count() <= 2) return CKPT_OK;
  CKPT_TRY(add({0, Again::halves, Order::by_rate, 1}, 0));
  if (runs_from_inputs(graph_) <= kRunsAtOnce) CKPT_TRY(add({0, Again::nothing, Order::by_rate, 1}, 0));
  return CKPT_OK;
}

// How much there may be to find between two stairs: 0 where they are close.
double Rows::steepness(const Point &high, const Point &low) const {
  const double memory = std::log(static_cast<double>(high.height) / static_cast<double>(std::max<size_t>(low.height, 1)));
  const double time = std::log((kTicks + static_cast<double>(low.ticks)) / (kTicks + static_cast<double>(high.ticks)));
  // Also where they take nearly the same time: what keeps more than the lower one may be faster than the higher one.
  return memory <= kFine || time <= 0 ? 0 : memory * (time + kFlat);
}

std::vector<Family> Rows::rows_through(const Point &high, const Point &low) const {
  std::vector<Family> rows;
  const auto add_both = [&](uint32_t group, Again again) {
    for (Order order : {Order::by_rate, Order::from_end}) {
      const Family row = candidates_.family(group, again, order);
      if (std::none_of(rows.begin(), rows.end(), [&](const Family &r) { return same_row(r, row); })) rows.push_back(row);
    }
  };
  for (const Point *p : {&low, &high})
    if (p->family.group > 1) add_both(p->family.group, p->family.again);
  add_both(1, Again::boundaries);
  return rows;
}

// The member of a row that is about so high and may be faster than `low`; false: none that is not tried.
bool Rows::member_at(const Family &row, size_t height, const Point &low, uint32_t *member) const {
  const Bracket b = found_.bracket(row, height);
  // The more it keeps the less it takes: what lies between is no faster than what lies above.
  if (b.below == nullptr || (b.above != nullptr && b.above->ticks >= low.ticks)) return false;
  const uint32_t last = b.above != nullptr ? b.above->member - 1 : row.size - 1;
  *member = std::min(last, candidates_.member_above(row.order, b.below->member, static_cast<double>(height - b.below->height)));
  return *member > b.below->member;
}

// The rows that lead through a gap, each tried at a part of its height.
Status Rows::try_gap(const Point &high, const Point &low, bool *any) {
  const std::vector<Family> rows = rows_through(high, low);
  for (const double part : {0.5, 0.25, 0.75}) {
    const size_t height = low.height + static_cast<size_t>(static_cast<double>(high.height - low.height) * part);
    const size_t before = found_.points().size();
    for (const Family &row : rows)
      if (uint32_t member = 0; member_at(row, height, low, &member)) CKPT_TRY(add(row, member));
    if (found_.points().size() > before) {
      *any = true;
      return CKPT_OK;
    }
  }
  return CKPT_OK;
}

Status Rows::try_between() {
  std::set<std::pair<uint32_t, uint32_t>> closed;
  while (found_.points().size() < tries_) {
    const std::vector<Point> &stairs = found_.stairs();
    double most = 0;
    size_t best = 0;
    for (size_t at = 1; at < stairs.size(); ++at) {
      if (closed.contains({stairs[at - 1].number, stairs[at].number})) continue;
      if (const double s = steepness(stairs[at - 1], stairs[at]); s > most) {
        most = s;
        best = at;
      }
    }
    if (best == 0) return CKPT_OK;
    const Point high = stairs[best - 1], low = stairs[best];
    bool any = false;
    CKPT_TRY(try_gap(high, low, &any));
    if (!any) closed.insert({high.number, low.number});
  }
  return CKPT_OK;
}

// Between a stair that fits and the one above it, along the row that looks best half-way. Which row that is, and which members
// may be stairs there, does not depend on the budget, and two budgets part ways only where one takes a member that is too high
// for the other: so what they find is in the same order as they are.
Status Rows::refine(size_t budget, size_t stair, Point *point) const {
  Point low = found_.stairs()[stair], high = found_.stairs()[stair - 1];
  *point = low;
  const size_t half = low.height + (high.height - low.height) / 2;
  int64_t least = 0;
  uint32_t from = 0, to = 0;
  Family best;
  for (const Family &row : rows_through(high, low)) {
    uint32_t member = 0;
    if (!member_at(row, half, low, &member)) continue;
    Point p;
    CKPT_TRY(try_one(row, member, &p));
    const int64_t ticks = between(high, p, low) ? p.ticks : low.ticks + 1;
    if (to != 0 && ticks >= least) continue;
    least = ticks;
    best = row;
    const Bracket below = found_.bracket(row, low.height), above = found_.bracket(row, high.height - 1);
    from = below.below != nullptr ? below.below->member : 0;
    to = above.above != nullptr ? above.above->member : row.size;
  }
  const uint32_t steps = graph_.item_bytes.size() > kLarge ? 6 : 32;
  for (uint32_t step = 0; step < steps && to > from + 1; ++step) {
    Point p;
    const uint32_t middle = from + (to - from) / 2;
    CKPT_TRY(try_one(best, middle, &p));
    if (!between(high, p, low)) {
      (p.height >= high.height ? to : from) = middle;
    } else if (p.height <= budget) {
      low = p;
      from = middle;
    } else {
      high = p;
      to = middle;
    }
  }
  *point = low;
  return CKPT_OK;
}

Status Rows::look() {
  CKPT_TRY(look_at_corners());
  return try_between();
}

// BUDGET without a text: nothing fits.
Status Rows::choose(size_t budget, Point *point) const {
  const size_t stair = found_.first_that_fits(budget);
  if (stair == found_.stairs().size()) return CKPT_ERROR_BUDGET;
  *point = found_.stairs()[stair];
  return stair > 0 ? refine(budget, stair, point) : Status{CKPT_OK};
}

}  // namespace ckpt::plan
