// AUTO: laws 3, 4 and 5 on random graphs, and never slower than a fixed strategy that fits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plan/make_plan.h"
#include "plan/verify.h"
#include "property/plan_graphs.h"

namespace ckpt::plan {
namespace {

using testing::Draw;
using testing::GraphMaker;
using testing::Kinds;

Draw draw() {
  return [](uint32_t low, uint32_t high) { return *rc::gen::inRange(low, high + 1); };
}

Status plan(const Graph &g, const GradientMap &gradients, uint32_t strategy, uint32_t k, uint32_t in_flight, size_t budget, Planned *out) {
  PlanRequest r;
  r.strategy = strategy;
  r.k = k;
  r.in_flight = in_flight;
  r.budget = budget;
  return make_plan(g, gradients, r, arena::Placer(), out);
}

void check(const Graph &g, const GradientMap &gradients, const Planned &p) {
  Verified v;
  if (verify(g, gradients.roots, p.program.actions, &v)) RC_FAIL(last_error());
  RC_ASSERT(v.peak == p.prediction.peak);
  RC_ASSERT(std::abs(v.recompute_seconds - p.prediction.recompute_seconds) <= 1e-9 * (1 + v.recompute_seconds));
}

RC_GTEST_PROP(PlanAuto, KeepsToTheBudgetAndIsMonotonic, ()) {
  Kinds kinds;
  kinds.nodes_high = 6;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const uint32_t in_flight = *rc::gen::inRange(0, 4) == 0 ? 3 : 1;
  Planned all;
  if (plan(g, gradients, CKPT_STRATEGY_STORE_ALL, 0, in_flight, 0, &all)) RC_FAIL(last_error());
  const size_t top = all.prediction.height;
  Planned p;
  size_t minimum = 0;
  const PlanRequest auto_request{CKPT_STRATEGY_AUTO, 0, in_flight, {}, {}, 0};
  if (find_minimum_budget(g, gradients, auto_request, arena::Placer(), &minimum)) RC_FAIL(last_error());
  RC_ASSERT(minimum <= top);
  if (minimum > 1) {
    RC_ASSERT(plan(g, gradients, CKPT_STRATEGY_AUTO, 0, in_flight, minimum - 1, &p) == CKPT_ERROR_BUDGET);
    RC_ASSERT(p.minimum_budget == minimum);
  }
  if (top == 0) return;
  std::vector<size_t> budgets = {std::max<size_t>(minimum, 1), top, top - (top > minimum)};
  for (int k = 0; k < 3; ++k) budgets.push_back(*rc::gen::inRange(minimum, top + 1));
  std::sort(budgets.begin(), budgets.end());
  Planned before;
  for (size_t k = 0; k < budgets.size(); ++k) {
    if (budgets[k] == 0) continue;
    if (plan(g, gradients, CKPT_STRATEGY_AUTO, 0, in_flight, budgets[k], &p)) RC_FAIL(last_error());
    check(g, gradients, p);
    RC_ASSERT(p.prediction.height <= budgets[k]);
    if (!before.program.actions.empty()) {
      RC_ASSERT(p.prediction.seconds() <= before.prediction.seconds() * (1 + 1e-9));
      RC_ASSERT(p.prediction.height >= before.prediction.height);
    }
    before = p;
  }
  // What is made from a marked slot may be made with it, once, right before the backward.
  if (!testing::marked_again(g)) RC_ASSERT(p.prediction.seconds() <= all.prediction.seconds() * (1 + 1e-9));
}

RC_GTEST_PROP(PlanAuto, StoreAllRunsNothingAgainButWhatIsMarked, ()) {
  Kinds kinds;
  kinds.marks = *rc::gen::arbitrary<bool>();
  kinds.groups = false;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Planned p;
  if (plan(g, gradients, CKPT_STRATEGY_STORE_ALL, 0, 1, 0, &p)) RC_FAIL(last_error());
  check(g, gradients, p);
  double marked = 0;
  for (uint32_t i = 0; i < g.node_count(); ++i) {
    const Shape &s = *g.nodes[i].shape;
    if (!gradients.runs[i]) continue;
    // Whole segments run whole.
    const Bits again = s.whole() && !(s.needed() & s.again()).empty() ? s.all() : s.closure(s.needed() & s.again(), s.slots() - s.again()).todo;
    again.each([&](uint32_t k) { marked += g.seconds_of(i, k); });
  }
  RC_ASSERT(p.prediction.recompute_seconds <= marked + 1e-9);
  if (!testing::marked_again(g)) RC_ASSERT(p.prediction.recompute_count == 0u);
}

RC_GTEST_PROP(PlanAuto, FixedStrategiesAreValid, ()) {
  Kinds kinds;
  kinds.nodes_high = 20;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const uint32_t k = *rc::gen::inRange(1u, 22u);
  for (uint32_t strategy = CKPT_STRATEGY_STORE_ALL; strategy <= CKPT_STRATEGY_FULL; ++strategy) {
    const bool takes = strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK;
    Planned p, least, less;
    if (plan(g, gradients, strategy, takes ? k : 0, 1, 0, &p)) RC_FAIL(last_error());
    check(g, gradients, p);
    if (p.prediction.height == 0) continue;
    if (plan(g, gradients, strategy, takes ? k : 0, 1, p.prediction.height, &least)) RC_FAIL(last_error());
    RC_ASSERT(least.program.actions == p.program.actions);
    if (p.prediction.height == 1) continue;
    RC_ASSERT(plan(g, gradients, strategy, takes ? k : 0, 1, p.prediction.height - 1, &less) == CKPT_ERROR_BUDGET);
    RC_ASSERT(less.minimum_budget == p.prediction.height);
  }
}

RC_GTEST_PROP(PlanAuto, IsNoSlowerThanAFixedStrategy, ()) {
  Kinds kinds;
  kinds.nodes_high = 6;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const uint32_t strategy = *rc::gen::inRange<uint32_t>(CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL + 1);
  const bool takes = strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK;
  Planned fixed, p;
  if (plan(g, gradients, strategy, takes ? *rc::gen::inRange(1u, 6u) : 0, 1, 0, &fixed)) RC_FAIL(last_error());
  if (fixed.prediction.height == 0) return;
  if (plan(g, gradients, CKPT_STRATEGY_AUTO, 0, 1, fixed.prediction.height, &p)) RC_FAIL(last_error());
  RC_ASSERT(p.prediction.seconds() <= fixed.prediction.seconds() * (1 + 1e-9));
}

}  // namespace
}  // namespace ckpt::plan
