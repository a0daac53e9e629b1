#include "plan/fastest.h"

#include <algorithm>
#include <cmath>

#include "plan/candidates.h"

namespace ckpt::plan {
namespace {

// One candidate, simulated.
struct Point {
  Family family;
  uint32_t member = 0;
  int64_t ticks = 0;  // of time beyond what store_all takes: so that sums in another order are equal
  double recompute = 0;
  size_t height = 0, peak = 0;
};

bool same_row(const Family &a, const Family &b) { return a.group == b.group && a.again == b.again && a.order == b.order; }

class Search {
 public:
  Search(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, const arena::Placer &start)
      : graph_(graph), gradients_(gradients), in_flight_(in_flight), start_(start), candidates_(graph, gradients) {
    start_.set_capacity(arena::kUnbounded);
    start_.set_limit(arena::kUnbounded);
    const double seconds = graph.forward_seconds() + graph.backward_seconds();
    ticks_per_second_ = seconds > 0 ? 1e11 / seconds : 0;
    const size_t weight = graph.item_bytes.size() * (in_flight > 1 ? 3 * in_flight + 1 : 1);
    tries_ = static_cast<uint32_t>(std::clamp<size_t>(kWork / std::max<size_t>(weight, 1), 24, 2000));
  }

  Status run(size_t budget, Planned *out);

 private:
  static constexpr size_t kWork = 1'500'000;  // items of all simulated programs together
  static constexpr uint64_t kRunsAtOnce = 60'000, kRunsAtAll = 4'000'000;

  Status try_one(const Family &family, uint32_t member, Point *point, Planned *planned) const;
  Status try_row(const Family &family, uint32_t count);
  Status try_all();
  Status try_full();
  void build_stairs();
  size_t first_that_fits(size_t budget) const;
  Status refine(size_t budget, size_t stair, Point *point) const;
  std::vector<uint32_t> groups() const;

  const Graph &graph_;
  const GradientMap &gradients_;
  const uint32_t in_flight_;
  arena::Placer start_;
  const Candidates candidates_;
  double ticks_per_second_ = 0;
  uint32_t tries_ = 0;
  std::vector<Point> points_;  // store_all first
  std::vector<Point> stairs_;  // fastest first
};

Status Search::try_one(const Family &family, uint32_t member, Point *point, Planned *planned) const {
  Result<Program> program = write_step(graph_, gradients_, candidates_.policy(family, member));
  if (!program.ok()) return program.status();
  Simulation s;
  CKPT_TRY(simulate_in_flight(graph_, gradients_, *program, start_, in_flight_, &s));
  point->family = family;
  point->member = member;
  point->ticks = std::llround(s.seconds() * ticks_per_second_);
  point->recompute = s.recompute_seconds;
  point->height = s.height;
  point->peak = s.peak;
  if (planned == nullptr) return CKPT_OK;
  planned->program = std::move(*program);
  planned->prediction = s;
  planned->strategy = candidates_.strategy(family, member, &planned->k);
  return CKPT_OK;
}

Status Search::try_row(const Family &family, uint32_t count) {
  if (family.size == 0) return CKPT_OK;
  for (uint32_t member : candidates_.sample(family, std::max(count, 2u))) {
    Point p;
    CKPT_TRY(try_one(family, member, &p, nullptr));
    points_.push_back(p);
  }
  return CKPT_OK;
}

// Lengths of groups to try: all of them, or each about half as long again as the one before.
std::vector<uint32_t> Search::groups() const {
  const uint32_t n = graph_.node_count();
  const bool all = uint64_t{12} * n <= tries_;
  std::vector<uint32_t> k;
  for (uint32_t g = 2; g < n; g = all ? g + 1 : g + std::max(1u, g / 2)) k.push_back(g);
  if (const uint32_t s = sqrt_group(n); s > 1 && s < n) k.push_back(s);
  std::sort(k.begin(), k.end());
  k.erase(std::unique(k.begin(), k.end()), k.end());
  // Few tries: only some of them.
  const size_t most = std::max<size_t>(3, tries_ / 6);
  if (k.size() > most) {
    std::vector<uint32_t> some;
    for (size_t j = 0; j < most; ++j) some.push_back(k[j * (k.size() - 1) / (most - 1)]);
    k = std::move(some);
  }
  return k;
}

Status Search::try_all() {
  const uint32_t n = graph_.node_count();
  CKPT_TRY(try_row(candidates_.family(1, Again::boundaries, Order::from_end), tries_ / 10));
  CKPT_TRY(try_row(candidates_.family(1, Again::boundaries, Order::by_rate), tries_ / 3));
  if (uint64_t{graph_.item_bytes.size()} * 64 <= kWork) CKPT_TRY(try_row(candidates_.family(1, Again::boundaries, Order::all_but), 0));
  if (tries_ >= 1000) {
    CKPT_TRY(try_row(candidates_.family(1, Again::boundaries, Order::each), 0));
    CKPT_TRY(try_row(candidates_.family(1, Again::everything, Order::each), 0));
  }
  const std::vector<uint32_t> lengths = groups();
  std::vector<Family> rows;
  for (uint32_t g : lengths)
    for (Again again : {Again::everything, Again::boundaries, Again::halves}) {
      if ((again == Again::boundaries && g < 3) || (again == Again::halves && g < 5)) continue;
      rows.push_back(candidates_.family(g, again, Order::by_rate));
      rows.push_back(candidates_.family(g, again, Order::from_end));
    }
  const size_t left = tries_ - std::min<size_t>(tries_, points_.size());
  const auto each = static_cast<uint32_t>(std::max<size_t>(1, left / std::max<size_t>(1, rows.size())));
  for (const Family &row : rows) {
    if (each > 1) {
      CKPT_TRY(try_row(row, each));
    } else if (row.order == Order::by_rate) {
      Family first = row;
      first.size = 1;
      CKPT_TRY(try_row(first, 1));
    }
  }
  if (n > 2) {
    CKPT_TRY(try_row({0, Again::halves, Order::by_rate, 1}, 1));
    if (runs_from_inputs(graph_) <= kRunsAtOnce) CKPT_TRY(try_full());
  }
  return CKPT_OK;
}

Status Search::try_full() { return try_row({0, Again::nothing, Order::by_rate, 1}, 1); }

void Search::build_stairs() {
  std::vector<Point> sorted = points_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Point &a, const Point &b) {
    if (a.ticks != b.ticks) return a.ticks < b.ticks;
    if (a.recompute != b.recompute) return a.recompute < b.recompute;
    return a.height != b.height ? a.height < b.height : a.peak < b.peak;
  });
  stairs_.assign(1, points_.front());
  for (const Point &p : sorted)
    if (p.ticks >= stairs_.back().ticks && p.height < stairs_.back().height && p.peak <= stairs_.back().peak) stairs_.push_back(p);
}

size_t Search::first_that_fits(size_t budget) const {
  size_t at = 0;
  while (at < stairs_.size() && stairs_[at].height > budget) ++at;
  return at;
}

// Between a stair that fits and the one above it, if both are of one row. Whether a member may be a stair between two others
// does not depend on the budget, and two budgets part ways only where one takes a member that is too high for the other: so
// what they find is in the same order as they are.
Status Search::refine(size_t budget, size_t stair, Point *point) const {
  Point low = stairs_[stair], high = stairs_[stair - 1];
  const bool row = same_row(low.family, high.family) && low.member < high.member && (low.family.order == Order::by_rate || low.family.order == Order::from_end);
  while (row && high.member - low.member > 1) {
    Point p;
    CKPT_TRY(try_one(low.family, low.member + (high.member - low.member) / 2, &p, nullptr));
    const bool between = p.ticks >= high.ticks && p.ticks <= low.ticks && p.height > low.height && p.height < high.height && p.peak >= low.peak && p.peak <= high.peak;
    if (!between) break;
    (p.height <= budget ? low : high) = p;
  }
  *point = low;
  return CKPT_OK;
}

Status Search::run(size_t budget, Planned *out) {
  const Family all = candidates_.family(1, Again::boundaries, Order::from_end);
  Point store_all;
  CKPT_TRY(try_one(all, graph_.node_count(), &store_all, out));
  if (budget == 0) return CKPT_OK;
  points_.push_back(store_all);
  CKPT_TRY(try_all());
  build_stairs();
  size_t stair = first_that_fits(budget);
  bool complete = true;
  if (runs_from_inputs(graph_) > kRunsAtOnce && runs_from_inputs(graph_) <= kRunsAtAll) {
    complete = stair == stairs_.size();
    if (complete) {
      CKPT_TRY(try_full());
      build_stairs();
      stair = first_that_fits(budget);
    }
  }
  out->minimum_budget = complete ? stairs_.back().height : 0;
  if (stair == stairs_.size())
    return fail(CKPT_ERROR_BUDGET, "no program within a budget of %zu bytes was found; the smallest budget that works is %zu, and %zu is enough to run nothing again", budget,
                out->minimum_budget, store_all.height);
  if (stair == 0) return CKPT_OK;
  Point chosen;
  CKPT_TRY(refine(budget, stair, &chosen));
  return try_one(chosen.family, chosen.member, &chosen, out);
}

}  // namespace

Status find_fastest(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, size_t budget, const arena::Placer &start, Planned *out) {
  return Search(graph, gradients, in_flight, start).run(budget, out);
}

}  // namespace ckpt::plan
