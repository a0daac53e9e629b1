#include "plan/best_chain.h"

#include <algorithm>

#include "plan/exact/least.h"
#include "plan/tighten.h"

namespace ckpt::plan {
namespace {

constexpr uint64_t kDefaultWork = 120'000'000;  // about a second
constexpr size_t kNear = 2;  // times what is enough: budgets below that are near the smallest one
// Actions of a program that is placed to know the smallest budget: for every budget of a chain of few segments; where it is near.
constexpr size_t kFewActions = 2'000, kMostActions = 1'000'000;
constexpr uint32_t kFewSegments = 200;
constexpr int kTries = 24;                      // of planning again for the height's sake
constexpr double kEqual = 1e-12;                // relative: sums in another order

}  // namespace

BestChain::BestChain(exact::Planner *planner, const Graph &graph, const GradientMap &gradients, const PlanRequest &request, const arena::Placer &start)
    : planner_(planner), graph_(graph), gradients_(gradients), request_(request), start_(start),
      base_seconds_(graph.forward_seconds() + graph.backward_seconds()), work_limit_(request.work_limit != 0 ? request.work_limit : kDefaultWork) {}

Status BestChain::take(Program program, Planned *out) const {
  tighten(graph_, gradients_, LiveState::start(graph_), {}, &program);
  PlanRequest unbounded = request_;
  unbounded.budget = 0;
  return predict(graph_, gradients_, unbounded, start_, std::move(program), out);
}

Status BestChain::solve(size_t load, uint64_t work_limit, Planned *out) {
  exact::Answer answer;
  CKPT_TRY(planner_->solve(load, work_limit, &answer));
  work_ += answer.work;
  class_bound_ = answer.class_bound_seconds;
  universal_bound_ = answer.universal_bound_seconds;
  proved_ = answer.status == CKPT_PLAN_OPTIMAL;
  return take(std::move(answer.program), out);
}

// For planning once more, from what the planner knows.
uint64_t BestChain::share() const { return std::max<uint64_t>(1, work_ < work_limit_ ? work_limit_ / 8 : work_limit_ / 64); }

// The smallest budget is looked for where it is near, and where that costs next to nothing.
bool BestChain::is_near(size_t budget) const {
  return (budget - std::min(budget, start_.in_use())) / (kNear * request_.in_flight) < planner_->enough();
}

Status BestChain::try_small(Program program) {
  if (program.actions.empty()) return CKPT_OK;
  Planned planned;
  CKPT_TRY(take(std::move(program), &planned));
  if (!knows_smallest() || planned.prediction.height < smallest_.prediction.height) smallest_ = std::move(planned);
  return CKPT_OK;
}

// Where no class is asked for and the items are few: the lowest program that there is.
Status BestChain::try_least() {
  if (request_.plan_class != CKPT_CLASS_DEFAULT || request_.in_flight != 1 || start_.in_use() != 0) return CKPT_OK;
  Program least = exact::least_of_all(graph_, gradients_);
  if (least.actions.empty()) return CKPT_OK;
  CKPT_TRY(try_small(least));
  PlanRequest unbounded = request_;  // tighten() may lift the load of such a program: as it is, too
  unbounded.budget = 0;
  Planned plain;
  CKPT_TRY(predict(graph_, gradients_, unbounded, start_, std::move(least), &plain));
  if (plain.prediction.height < smallest_.prediction.height) smallest_ = std::move(plain);
  return CKPT_OK;
}

// It is the height of a program of the smallest load. Where that one has too many actions to place: of a program of the next
// load that has few enough; where packing misses that load: of the lowest of some programs of little more.
Status BestChain::find_smallest() {
  const size_t most = std::max(kFewActions, kMostActions / (request_.in_flight == 1 ? 1 : 3 * size_t{request_.in_flight}));
  const size_t least = planner_->minimum_load(), enough = planner_->enough();
  for (size_t load = least; !knows_smallest() && load / kNear <= enough; load += load / 16 + 1) CKPT_TRY(try_small(planner_->write_small(load, most)));
  if (!knows_smallest() || request_.in_flight != 1 || start_.in_use() != 0) return CKPT_OK;
  const size_t excess = std::max(smallest_.prediction.height, least) - least;
  for (size_t part : {8, 4, 2})
    if (smallest_.prediction.height > smallest_.prediction.peak && excess / part > 0) CKPT_TRY(try_small(planner_->write_small(least + excess / part, most)));
  return try_least();
}

// `out` is too high. With one recording in flight the excess says how much lower the load must be. With more the height is that
// of all of them: the load is halved between what fits and what does not.
Status BestChain::lower(size_t budget, size_t load, Planned *out) {
  const size_t least = planner_->minimum_load();
  size_t fits = least, over = load;
  Planned best;
  for (int k = 0; k < kTries && over > fits + 1; ++k) {
    const size_t excess = out->prediction.height - budget;
    size_t next = request_.in_flight == 1 ? (over > fits + excess ? over - excess : fits) : fits + (over - fits) / 2;
    if (next <= fits) break;
    const Status status = solve(next, share(), out);
    if (status == CKPT_ERROR_BUDGET) break;
    CKPT_TRY(status);
    if (out->prediction.height > budget) {
      over = std::min(next, std::max(out->prediction.peak, fits + 1));
      continue;
    }
    best = *out;
    fits = next;
    if (request_.in_flight == 1) break;
  }
  if (best.program.actions.empty()) {  // nothing above the smallest load fits: there is a better program of that load than any
    if (!knows_smallest()) CKPT_TRY(find_smallest());
    if (!knows_smallest() || smallest_.prediction.height > budget) return refuse(budget, out);
    best = smallest_;
    Planned again;
    if (const Status status = load > least ? solve(least, share(), &again) : Status{CKPT_ERROR_BUDGET}; status == CKPT_OK && again.prediction.height <= budget) best = std::move(again);
  }
  *out = std::move(best);
  return CKPT_OK;
}

// Where the planner stopped early, a fixed strategy may be faster than what it had; and of programs of the same time the one that
// puts nothing off is the plainer.
Status BestChain::compare(size_t budget, std::span<const uint32_t> strategies, Planned *out) const {
  for (uint32_t strategy : strategies) {
    PlanRequest fixed;
    fixed.strategy = strategy;
    fixed.in_flight = request_.in_flight;
    fixed.budget = budget;
    Planned other;
    const Status status = make_plan(graph_, gradients_, fixed, start_, &other);
    if (status == CKPT_ERROR_BUDGET || status == CKPT_ERROR_OVERFLOW) continue;
    CKPT_TRY(status);
    const double less = out->prediction.seconds() - other.prediction.seconds(), equal = kEqual * out->prediction.seconds();
    if (less < -equal || (less <= equal && other.prediction.recompute_count >= out->prediction.recompute_count)) continue;
    *out = std::move(other);
  }
  return CKPT_OK;
}

void BestChain::certify(double class_bound, double universal_bound, bool proved, Planned *out) const {
  const double overhead = out->prediction.seconds() - base_seconds_;
  const double slack = kEqual * (base_seconds_ + overhead);
  const auto gap = [&](double bound) { return overhead - bound > slack ? overhead - bound : 0; };
  out->class_gap_seconds = gap(class_bound);
  out->universal_gap_seconds = std::max(out->class_gap_seconds, gap(universal_bound));
  // Proved in ticks: what the gap then has is their rounding.
  out->status = proved || out->class_gap_seconds == 0 ? CKPT_PLAN_OPTIMAL : CKPT_PLAN_GAP;
  out->plan_class = request_.plan_class != CKPT_CLASS_DEFAULT ? request_.plan_class : static_cast<uint32_t>(CKPT_CLASS_SIGMA_S_W);
  out->minimum_budget = smallest_.prediction.height;  // 0 where it is not known
  if (out->strategy == CKPT_STRATEGY_AUTO && out->prediction.recompute_count == 0) out->strategy = CKPT_STRATEGY_STORE_ALL;
  out->work = work_;
}

Status BestChain::refuse(size_t budget, Planned *out) const {
  out->minimum_budget = smallest_.prediction.height;
  return fail(CKPT_ERROR_BUDGET, "no program within a budget of %zu bytes was found; the smallest budget that works is %zu", budget, out->minimum_budget);
}

Status BestChain::run(size_t budget, Planned *out) {
  const size_t limit = budget != 0 ? budget : arena::kUnbounded;
  const bool near = is_near(limit);
  if (!near && graph_.node_count() <= kFewSegments) CKPT_TRY(try_small(planner_->write_small(planner_->minimum_load(), kFewActions)));
  if (near || knows_smallest()) CKPT_TRY(find_smallest());
  if (knows_smallest() && smallest_.prediction.height > limit) return refuse(budget, out);
  const size_t load = std::max(near ? planner_->minimum_load() : 0, limit - std::min(limit, start_.in_use()));
  const Status status = solve(load, work_limit_ - work_limit_ / 8 * 3, out);  // the rest is for planning again
  if (status == CKPT_ERROR_BUDGET) return refuse(budget, out);
  CKPT_TRY(status);
  const double class_bound = class_bound_, universal_bound = universal_bound_;
  const bool proved = proved_ && out->prediction.height <= limit && request_.in_flight == 1;
  if (out->prediction.height > limit) CKPT_TRY(lower(limit, load, out));
  // The lowest program may be of no class, and faster than the best of this one.
  if (knows_smallest() && smallest_.prediction.height <= limit && smallest_.prediction.seconds() < out->prediction.seconds() * (1 - kEqual)) *out = smallest_;
  certify(class_bound, universal_bound, proved, out);
  const bool late = out->prediction.recompute_count > 0 && out->prediction.seconds() <= base_seconds_ * (1 + kEqual);
  if (out->status == CKPT_PLAN_GAP || late) {
    constexpr uint32_t kFixed[] = {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT};
    CKPT_TRY(compare(limit, std::span(kFixed).first(late ? 1 : 3), out));
    certify(class_bound, universal_bound, proved, out);
  }
  return CKPT_OK;
}

Status BestChain::curve(uint32_t capacity, std::vector<CurvePoint> *out) {
  std::vector<exact::Answer> answers;
  CKPT_TRY(planner_->curve(std::max(capacity, 2u), work_limit_, &answers));
  for (const exact::Answer &a : answers) {
    Planned planned;
    CKPT_TRY(take(a.program, &planned));
    // The bounds are those of one recording's load: a pipeline's height says nothing of the kind.
    const bool alone = request_.in_flight == 1;
    certify(alone ? a.class_bound_seconds : 0, alone ? a.universal_bound_seconds : 0, alone && a.status == CKPT_PLAN_OPTIMAL, &planned);
    out->push_back({planned.prediction, planned.status, planned.class_gap_seconds, planned.universal_gap_seconds});
  }
  return CKPT_OK;
}

}  // namespace ckpt::plan
