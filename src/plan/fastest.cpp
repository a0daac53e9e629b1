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
    const size_t weight = graph.item_bytes.size() * (in_flight > 1 ? size_t{3} * in_flight + 1 : 1);
    const size_t least = std::clamp<size_t>(4 * kWork / std::max<size_t>(weight, 1), kLeastTries, 40);
    tries_ = static_cast<uint32_t>(std::clamp<size_t>(kWork / std::max<size_t>(weight, 1), least, kMostTries));
  }

  Status run(size_t budget, Planned *out);

 private:
  static constexpr double kTicks = 1e11;                             // in a whole step
  static constexpr size_t kWork = 1'000'000;                         // items of all simulated programs together
  static constexpr size_t kLeastTries = 14, kMostTries = 400;
  static constexpr uint64_t kRunsAtOnce = 60'000, kRunsAtAll = 4'000'000;  // of Again::nothing: always; if nothing else fits
  static constexpr size_t kLarge = 20'000;                           // items: where the smallest budget is looked for on demand
  static constexpr double kFine = 1.0 / 256;                         // stairs closer than that are close enough

  Status try_one(const Family &family, uint32_t member, Point *point, Planned *planned) const;
  Status add(const Family &family, uint32_t member);
  Status try_corners();
  Status try_between();
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
  for (uint32_t m = 0; m < candidates_.size(Order::each); ++m) {
    CKPT_TRY(add(candidates_.family(1, Again::boundaries, Order::each), m));
    CKPT_TRY(add(candidates_.family(1, Again::everything, Order::each), m));
  }
  for (uint32_t g : groups())
    for (Again again : {Again::everything, Again::boundaries, Again::halves}) {
      if ((again == Again::boundaries && g < 3) || (again == Again::halves && g < 5)) continue;
      if (tries_ == kLeastTries && (again == Again::halves || (again == Again::boundaries && g != sqrt_group(graph_.node_count())))) continue;
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
  return memory <= kFine || time <= kFine / 16 ? 0 : memory * time;
}

// Goes up from the lower stair, and down from the higher one, by parts of what lies between them.
Status Search::try_gap(const Point &high, const Point &low, bool *any) {
  const double bytes = static_cast<double>(high.height - low.height);
  for (const double part : {0.5, 0.25, 0.75}) {
    const size_t before = found_.points().size();
    for (const Order order : {Order::by_rate, Order::from_end}) {
      if (ordered(low.family.order) && low.family.size != 1 && (low.member == 0 || low.family.order == order)) {
        const Family row = candidates_.family(low.family.group, low.family.again, order);
        if (const uint32_t m = candidates_.member_above(order, low.member, bytes * part); m < row.size) CKPT_TRY(add(row, m));
      }
      if (high.family.order != order || high.member == 0) continue;
      // The first member that is no further down.
      uint32_t from = 0, to = high.member;
      while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (candidates_.member_above(order, middle, bytes * part) > high.member) to = middle;
        else from = middle + 1;
      }
      CKPT_TRY(add(high.family, from));
    }
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

// Between a stair that fits and the one above it, along the row of one of them. Which members may be stairs there does not
// depend on the budget, and two budgets part ways only where one takes a member that is too high for the other: so what they
// find is in the same order as they are.
Status Search::refine(size_t budget, size_t stair, Point *point) const {
  const Point top = found_.stairs()[stair - 1];
  Point low = found_.stairs()[stair], high = top;
  *point = low;
  Family row = low.family;
  uint32_t from = low.member, to = 0;
  if (ordered(row.order) && row.size != 1) {
    to = found_.tried_above(row, from);
  } else {
    row = high.family;
    to = high.member;
    if (!ordered(row.order) || to == 0) return CKPT_OK;
    from = found_.tried_below(row, to);
  }
  const uint32_t steps = graph_.item_bytes.size() > kLarge ? 6 : 32;
  for (uint32_t step = 0; step < steps && to - from > 1; ++step) {
    Point p;
    const uint32_t middle = from + (to - from) / 2;
    CKPT_TRY(try_one(row, middle, &p, nullptr));
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
