#include "plan/fastest.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "plan/stairs.h"

namespace ckpt::plan {
namespace {

class Search {
 public:
  Search(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, const arena::Placer &start)
      : graph_(graph), gradients_(gradients), in_flight_(in_flight), start_(start), candidates_(graph, gradients) {
    start_.set_capacity(arena::kUnbounded);
    start_.set_limit(arena::kUnbounded);
    const double seconds = graph.forward_seconds() + graph.backward_seconds();
    ticks_per_second_ = seconds > 0 ? kTicks / seconds : 0;
    const size_t weight = (graph.item_bytes.size() + 3 * size_t{graph.node_count()}) * (in_flight > 1 ? size_t{3} * in_flight + 1 : 1);
    const size_t least = std::clamp<size_t>(5 * kWork / 2 / std::max<size_t>(weight, 1), kLeastTries, 40);
    tries_ = static_cast<uint32_t>(std::clamp<size_t>(kWork / std::max<size_t>(weight, 1), least, kMostTries));
  }

  Status run(size_t budget, Planned *out);

 private:
  static constexpr double kTicks = 1e11;                             // in a whole step
  static constexpr size_t kWork = 1'600'000;                         // items of all simulated programs together
  static constexpr size_t kLeastTries = 14, kMostTries = 400;
  static constexpr uint64_t kRunsAtOnce = 60'000, kRunsAtAll = 4'000'000;  // of Again::nothing: always; if nothing else fits
  static constexpr size_t kLarge = 20'000;                           // items: where the smallest budget is looked for on demand
  static constexpr double kFine = 1.0 / 256;                         // stairs closer than that are close enough
  static constexpr double kFlat = 0.1;

  Status try_one(const Family &family, uint32_t member, Point *point, Planned *planned) const;
  Status add(const Family &family, uint32_t member);
  Status try_corners();
  Status try_between();
  std::vector<Family> rows_through(const Point &high, const Point &low) const;
  bool member_at(const Family &row, size_t height, const Point &low, uint32_t *member) const;
  Status try_gap(const Point &high, const Point &low, bool *any);
  double steepness(const Point &high, const Point &low) const;
  Status refine(size_t budget, size_t stair, Point *point) const;
  std::vector<uint32_t> groups() const;

  const Graph &graph_;
  const GradientMap &gradients_;
  const uint32_t in_flight_;
  arena::Placer start_;
  const Candidates candidates_;
  double ticks_per_second_ = 0;
  uint32_t tries_ = 0;
  Stairs found_;
};

Status Search::try_one(const Family &family, uint32_t member, Point *point, Planned *planned) const {
  Result<Program> program = write_step(graph_, gradients_, candidates_.policy(family, member));
  if (!program.ok()) return program.status();
  Simulation s;
  CKPT_TRY(simulate_in_flight(graph_, gradients_, *program, start_, in_flight_, &s));
  point->family = family;
  point->member = member;
  point->ticks = std::llround(s.seconds() * ticks_per_second_);
  point->recompute_count = s.recompute_count;
  point->height = s.height;
  point->peak = s.peak;
  if (planned == nullptr) return CKPT_OK;
  planned->program = std::move(*program);
  planned->prediction = s;
  planned->strategy = candidates_.strategy(family, member, &planned->k);
  return CKPT_OK;
}

Status Search::add(const Family &family, uint32_t member) {
  if (found_.tried(family, member)) return CKPT_OK;
  Point p;
  CKPT_TRY(try_one(family, member, &p, nullptr));
  found_.add(p);
  return CKPT_OK;
}

// Lengths of groups: all of them, or each about half as long again as the one before, or some of those.
std::vector<uint32_t> Search::groups() const {
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

Status Search::try_corners() {
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
double Search::steepness(const Point &high, const Point &low) const {
  const double memory = std::log(static_cast<double>(high.height) / static_cast<double>(std::max<size_t>(low.height, 1)));
  const double time = std::log((kTicks + static_cast<double>(low.ticks)) / (kTicks + static_cast<double>(high.ticks)));
  // Also where they take nearly the same time: what keeps more than the lower one may be faster than the higher one.
  return memory <= kFine || time <= 0 ? 0 : memory * (time + kFlat);
}

std::vector<Family> Search::rows_through(const Point &high, const Point &low) const {
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
bool Search::member_at(const Family &row, size_t height, const Point &low, uint32_t *member) const {
  const Bracket b = found_.bracket(row, height);
  // The more it keeps the less it takes: what lies between is no faster than what lies above.
  if (b.below == nullptr || (b.above != nullptr && b.above->ticks >= low.ticks)) return false;
  const uint32_t last = b.above != nullptr ? b.above->member - 1 : row.size - 1;
  *member = std::min(last, candidates_.member_above(row.order, b.below->member, static_cast<double>(height - b.below->height)));
  return *member > b.below->member;
}

// The rows that lead through a gap, each tried at a part of its height.
Status Search::try_gap(const Point &high, const Point &low, bool *any) {
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

Status Search::try_between() {
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
Status Search::refine(size_t budget, size_t stair, Point *point) const {
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
    CKPT_TRY(try_one(row, member, &p, nullptr));
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
    CKPT_TRY(try_one(best, middle, &p, nullptr));
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

Status Search::run(size_t budget, Planned *out) {
  const Family all = candidates_.family(1, Again::boundaries, Order::from_end);
  Point store_all;
  CKPT_TRY(try_one(all, graph_.node_count(), &store_all, out));
  // Nothing is faster than what makes nothing twice.
  const bool large = graph_.item_bytes.size() > kLarge;
  if (out->prediction.recompute_count == 0 && (budget == 0 || (large && store_all.height <= budget))) return CKPT_OK;
  if (budget == 0) budget = SIZE_MAX;
  found_.add(store_all);
  CKPT_TRY(try_corners());
  CKPT_TRY(try_between());
  size_t stair = found_.first_that_fits(budget);
  const uint64_t runs = runs_from_inputs(graph_);
  bool complete = runs <= kRunsAtOnce || runs > kRunsAtAll;
  if (!complete && stair == found_.stairs().size()) {
    complete = true;
    CKPT_TRY(add({0, Again::nothing, Order::by_rate, 1}, 0));
    stair = found_.first_that_fits(budget);
  }
  out->minimum_budget = complete ? found_.stairs().back().height : 0;
  if (stair == found_.stairs().size())
    return fail(CKPT_ERROR_BUDGET, "no program within a budget of %zu bytes was found; the smallest budget that works is %zu, and %zu is enough to run nothing again", budget,
                out->minimum_budget, store_all.height);
  Point chosen = found_.stairs()[stair];
  if (stair > 0) CKPT_TRY(refine(budget, stair, &chosen));
  return try_one(chosen.family, chosen.member, &chosen, out);
}

}  // namespace

Status find_fastest(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, size_t budget, const arena::Placer &start, Planned *out) {
  return Search(graph, gradients, in_flight, start).run(budget, out);
}

}  // namespace ckpt::plan
