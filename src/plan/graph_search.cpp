#include "plan/graph_search.h"

#include <algorithm>

#include "plan/graph_search_local.h"
#include "plan/graph_search_rows.h"
#include "plan/graph_search_smallest.h"

namespace ckpt::plan {
namespace {

constexpr uint64_t kDefaultWork = 60'000'000;  // units: about 0.7 s; small graphs are through before

class Search {
 public:
  Search(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, uint64_t work_limit, const arena::Placer &start)
      : trial_(graph, gradients, in_flight, start), rows_(trial_), space_(graph, gradients), smallest_(graph, gradients, in_flight, work_limit / 4, start),
        local_(trial_, space_, work_limit - work_limit / 4) {}

  Status run(size_t budget, Planned *out);
  Status curve(uint32_t capacity, std::vector<CurvePoint> *out);

 private:
  // A program of either half.
  struct Chosen {
    int64_t ticks = 0;
    uint64_t recompute_count = 0;
    size_t height = 0;
    const LocalPoint *local = nullptr;
    Point row;

    bool better_than(const Chosen &o) const {
      if (ticks != o.ticks) return ticks < o.ticks;
      return recompute_count != o.recompute_count ? recompute_count < o.recompute_count : height < o.height;
    }
  };

  static Chosen of(const Point &p) { return {p.ticks, p.recompute_count, p.height, nullptr, p}; }
  static Chosen of(const LocalPoint &p) { return {p.ticks, p.recompute_count, p.height, &p, {}}; }
  Family all() const { return rows_.candidates().family(1, Again::boundaries, Order::from_end); }

  Status look();
  Status choose(size_t budget, Chosen *chosen) const;
  Status finish(Program program, uint32_t strategy, uint32_t k, Planned *out) const;
  Status finish(const Policy &policy, uint32_t strategy, uint32_t k, Planned *out) const;
  Status finish(const Chosen &chosen, Planned *out) const;
  Status finish_smallest(Planned *out) const;

  const Trial trial_;
  Rows rows_;
  const ChoiceSpace space_;
  Smallest smallest_;
  LocalSearch local_;
};

Status Search::look() {
  CKPT_TRY(smallest_.look());
  CKPT_TRY(rows_.look());
  for (const Point &p : rows_.stairs()) CKPT_TRY(local_.seed(rows_.candidates().policy(p.family, p.member)));
  uint32_t ignored = 0;
  if (smallest_.has_policy()) CKPT_TRY(local_.seed(smallest_.policy(&ignored, &ignored)));
  return local_.run();
}

// BUDGET without a text: nothing fits.
Status Search::choose(size_t budget, Chosen *chosen) const {
  Point row;
  const Status status = rows_.choose(budget, &row);
  if (status != CKPT_OK && status != CKPT_ERROR_BUDGET) return status;
  bool any = status == CKPT_OK;
  if (any) *chosen = of(row);
  for (const LocalPoint &p : local_.front()) {
    if (p.height > budget) continue;
    if (!any || of(p).better_than(*chosen)) *chosen = of(p);
    any = true;
    break;  // fastest first
  }
  return any ? CKPT_OK : CKPT_ERROR_BUDGET;
}

Status Search::finish(const Policy &policy, uint32_t strategy, uint32_t k, Planned *out) const {
  Result<Program> program = write_step(trial_.graph(), trial_.gradients(), policy);
  return program.ok() ? finish(std::move(*program), strategy, k, out) : program.status();
}

Status Search::finish(Program program, uint32_t strategy, uint32_t k, Planned *out) const {
  const Graph &graph = trial_.graph();
  PlanRequest unbounded;
  unbounded.in_flight = trial_.in_flight();
  CKPT_TRY(predict(graph, trial_.gradients(), unbounded, trial_.start(), std::move(program), out));
  out->strategy = strategy;
  out->k = k;
  // No certificate but the time that every step takes.
  out->plan_class = 0;
  out->class_gap_seconds = 0;
  out->universal_gap_seconds = std::max(0.0, out->prediction.seconds() - graph.forward_seconds() - graph.backward_seconds());
  out->status = out->prediction.recompute_count == 0 ? CKPT_PLAN_OPTIMAL : CKPT_PLAN_GAP;
  out->work = smallest_.work() + local_.work();
  return CKPT_OK;
}

Status Search::finish(const Chosen &chosen, Planned *out) const {
  if (chosen.local != nullptr) return finish(space_.to_policy(chosen.local->choices), CKPT_STRATEGY_AUTO, 0, out);
  uint32_t k = 0;
  const uint32_t strategy = rows_.candidates().strategy(chosen.row.family, chosen.row.member, &k);
  return finish(rows_.candidates().policy(chosen.row.family, chosen.row.member), strategy, k, out);
}

Status Search::finish_smallest(Planned *out) const {
  if (smallest_.has_policy()) {
    uint32_t strategy = 0, k = 0;
    const Policy policy = smallest_.policy(&strategy, &k);
    CKPT_TRY(finish(policy, strategy, k, out));
  }
  if (smallest_.program().actions.empty()) return CKPT_OK;
  Planned other;
  CKPT_TRY(finish(smallest_.program(), CKPT_STRATEGY_AUTO, 0, &other));
  if (!smallest_.has_policy() || other.prediction.height < out->prediction.height) *out = std::move(other);
  return CKPT_OK;
}

Status Search::run(size_t budget, Planned *out) {
  Point store_all;
  CKPT_TRY(rows_.try_one(all(), trial_.graph().node_count(), &store_all));
  // Nothing is faster than what makes nothing twice.
  if (store_all.recompute_count == 0 && (budget == 0 || (rows_.large() && store_all.height <= budget))) {
    CKPT_TRY(finish(of(store_all), out));
    out->minimum_budget = 0;
    if (budget == 0 || out->prediction.height <= budget) return CKPT_OK;
  }
  if (budget == 0) budget = SIZE_MAX;
  CKPT_TRY(look());
  Planned smallest;
  CKPT_TRY(finish_smallest(&smallest));
  if (smallest.prediction.height > budget && !smallest_.complete()) {
    CKPT_TRY(smallest_.look_further());
    CKPT_TRY(finish_smallest(&smallest));
  }
  const size_t least = smallest.prediction.height, minimum = smallest_.complete() ? least : 0;
  if (least > budget) {
    out->minimum_budget = minimum;
    return fail(CKPT_ERROR_BUDGET, "no program within a budget of %zu bytes was found; the smallest budget that works is %zu, and %zu is enough to run nothing again", budget, minimum,
                store_all.height);
  }
  for (size_t load = budget;;) {
    Chosen chosen;
    const Status status = choose(load, &chosen);
    if (status == CKPT_ERROR_BUDGET) {
      *out = smallest;
      break;
    }
    CKPT_TRY(status);
    CKPT_TRY(finish(chosen, out));
    if (out->prediction.height <= budget) break;
    const size_t excess = out->prediction.height - budget;
    load = load > excess ? std::min(load, std::max(chosen.height, excess)) - excess : 0;
  }
  // The lowest program comes from another search, and may be faster than what this one has above it.
  if (smallest.prediction.seconds() < out->prediction.seconds()) *out = std::move(smallest);
  out->minimum_budget = minimum;
  return CKPT_OK;
}

Status Search::curve(uint32_t capacity, std::vector<CurvePoint> *out) {
  CKPT_TRY(look());
  std::vector<Chosen> points;
  for (const Point &p : rows_.stairs()) points.push_back(of(p));
  for (const LocalPoint &p : local_.front()) points.push_back(of(p));
  std::stable_sort(points.begin(), points.end(), [](const Chosen &a, const Chosen &b) { return a.better_than(b); });
  std::vector<Chosen> stairs;
  for (const Chosen &c : points)
    if (stairs.empty() || c.height < stairs.back().height) stairs.push_back(c);
  const size_t count = std::min<size_t>(capacity, stairs.size());
  for (size_t k = 0; k < count; ++k) {  // the ends are among them
    Planned planned;
    CKPT_TRY(finish(stairs[count == 1 ? stairs.size() - 1 : k * (stairs.size() - 1) / (count - 1)], &planned));
    out->push_back({planned.prediction, planned.status, planned.class_gap_seconds, planned.universal_gap_seconds});
  }
  return CKPT_OK;
}

}  // namespace

Status search_graph(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, size_t budget, uint64_t work_limit, const arena::Placer &start, Planned *out) {
  return Search(graph, gradients, in_flight, work_limit != 0 ? work_limit : kDefaultWork, start).run(budget, out);
}

Status search_graph_curve(const Graph &graph, const GradientMap &gradients, uint32_t in_flight, uint64_t work_limit, uint32_t capacity, std::vector<CurvePoint> *out) {
  const arena::Placer empty;
  return Search(graph, gradients, in_flight, work_limit != 0 ? work_limit : kDefaultWork, empty).curve(capacity, out);
}

}  // namespace ckpt::plan
