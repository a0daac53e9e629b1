// Every program that is written, for any graph, any strategy and any state: valid for the machine and for the independent
// verifier, which agree to the byte, and true to the laws.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plan/make_plan.h"
#include "plan/tighten.h"
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

constexpr Again kAgain[] = {Again::everything, Again::boundaries, Again::halves, Again::nothing};

// Some roots are not given a gradient, or are not roots at all.
GradientMap some_gradients(const Graph &g) {
  std::vector<Root> roots = default_roots(g);
  if (*rc::gen::inRange(0, 4) == 0) {
    std::erase_if(roots, [](const Root &) { return *rc::gen::inRange(0, 3) == 0; });
    for (Root &r : roots) r.has_grad = *rc::gen::inRange(0, 3) != 0;
  }
  return derive_gradients(g, roots);
}

Policy some_policy(const Graph &g) {
  Policy p;
  p.again = kAgain[*rc::gen::inRange(0, 4)];
  const int much = *rc::gen::inRange(0, 5);
  for (const Node &n : g.nodes) {
    Bits keep;
    n.shape->slots().each([&](uint32_t k) {
      if (*rc::gen::inRange(0, 4) < much) keep.set(k);
    });
    p.keep_slots.push_back(keep);
  }
  for (uint32_t v = 0; v < g.value_count(); ++v) p.keep_value.push_back(*rc::gen::inRange(0, 4) < much);
  return p;
}

bool holds_only_input_gradients(const PaperMachine &m) {
  const Graph &g = m.graph();
  for (const Bits &b : m.state().live)
    if (!b.empty()) return false;
  for (uint32_t v = 0; v < g.value_count(); ++v)
    if (m.grad_block(v) != kNoBlock && g.values[v].producer != kNone) return false;
  return true;
}

// Each node's backward once, the last node's first.
bool backwards_in_order(const Graph &g, const Program &p) {
  uint32_t next = g.node_count();
  for (const Action &a : p.actions) {
    if (a.kind != ActionKind::backward) continue;
    if (next == 0 || a.index != next - 1) return false;
    next = a.index;
  }
  return next == 0;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(a)); }

void check_step(const Graph &g, const GradientMap &gradients, const Program &program, Simulation *s) {
  RC_ASSERT(backwards_in_order(g, program));
  PaperMachine m(&g, Paper{g.rule, arena::Placer()});
  RC_ASSERT(m.start(gradients) == CKPT_OK);
  if (simulate(m, gradients, program.actions, s)) RC_FAIL(last_error());
  RC_ASSERT(holds_only_input_gradients(m));
  RC_ASSERT(s->held <= s->peak);
  RC_ASSERT(s->peak <= s->height);
  Verified v;
  if (verify(g, gradients.roots, program.actions, &v)) RC_FAIL(last_error());
  RC_ASSERT(v.peak == s->peak);
  RC_ASSERT(close(v.seconds, s->seconds()));
}

RC_GTEST_PROP(PlanPrograms, AnyPolicyGivesAValidStep, ()) {
  const Graph g = GraphMaker(draw(), Kinds{}).make();
  const GradientMap gradients = some_gradients(g);
  Result<Program> p = write_step(g, gradients, some_policy(g));
  if (!p.ok()) RC_FAIL(last_error());
  Simulation s;
  check_step(g, gradients, *p, &s);
}

RC_GTEST_PROP(PlanPrograms, TighteningAgainChangesNothing, ()) {
  const Graph g = GraphMaker(draw(), Kinds{}).make();
  const GradientMap gradients = some_gradients(g);
  Result<Program> p = write_step(g, gradients, some_policy(g));
  if (!p.ok()) RC_FAIL(last_error());
  Program again = *p;
  for (Action &a : again.actions) a.in_place = Bits{};
  // Without in_place the input would live on: the free that stands for it.
  std::vector<Action> actions;
  for (size_t t = 0; t < again.actions.size(); ++t) {
    actions.push_back(again.actions[t]);
    const Action &a = p->actions[t];
    if (a.kind == ActionKind::forward)
      a.in_place.each([&](uint32_t k) { actions.push_back({ActionKind::free, g.inputs_of(a.index)[g.nodes[a.index].shape->item(k).in_place_input - 1], {}, {}}); });
  }
  again.actions = actions;
  tighten(g, gradients, LiveState::start(g), {}, &again);
  RC_ASSERT(again.actions == p->actions);
}

RC_GTEST_PROP(PlanPrograms, TighteningNeverCostsMemoryOrTime, ()) {
  // A slot that is made ALONE when nobody wants the rest of its group any more may cost more than the group.
  Kinds kinds;
  kinds.groups = *rc::gen::arbitrary<bool>();
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = some_gradients(g);
  // Everything is kept; some of it is dropped at the end of the forward pass and made again.
  Program loose;
  for (uint32_t i = 0; i < g.node_count(); ++i) loose.actions.push_back({ActionKind::forward, i, g.nodes[i].shape->all() - g.nodes[i].shape->again(), {}});
  for (uint32_t i = g.node_count(); i-- > 0;) {
    const Shape &s = *g.nodes[i].shape;
    if (s.replayable()) loose.actions.push_back({ActionKind::forward, i, s.needed(), {}});
    loose.actions.push_back({ActionKind::backward, i, {}, {}});
  }
  Simulation before, after;
  if (simulate_step(g, gradients, loose, arena::Placer(), &before)) RC_FAIL(last_error());
  tighten(g, gradients, LiveState::start(g), {}, &loose);
  check_step(g, gradients, loose, &after);
  RC_ASSERT(after.peak <= before.peak);
  if (!kinds.groups) RC_ASSERT(after.seconds() <= before.seconds() + 1e-9);
}

// Items and inputs that are dropped at random, as far as they can be made again, after a forward pass that kept everything.
std::vector<Action> random_losses(const Graph &g) {
  std::vector<Action> actions;
  for (uint32_t i = 0; i < g.node_count(); ++i) {
    const Shape &s = *g.nodes[i].shape;
    actions.push_back({ActionKind::forward, i, s.all() - s.again(), {}});
  }
  const int much = *rc::gen::inRange(0, 5);
  for (uint32_t i = 0; i < g.node_count(); ++i) {
    const Shape &s = *g.nodes[i].shape;
    if (!s.replayable()) continue;
    Bits gone;
    (s.slots() - s.keep() - s.again()).each([&](uint32_t k) {
      if (*rc::gen::inRange(0, 4) < much) gone.set(k);
    });
    if (!gone.empty()) actions.push_back({ActionKind::drop, i, gone, {}});
    (s.outputs() - s.keep() - s.caller()).each([&](uint32_t k) {
      if (*rc::gen::inRange(0, 4) < much) actions.push_back({ActionKind::free, g.value_of(i, k), {}, {}});
    });
  }
  return actions;
}

RC_GTEST_PROP(PlanPrograms, BackwardFromAnyState, ()) {
  const Graph g = GraphMaker(draw(), Kinds{}).make();
  const GradientMap gradients = some_gradients(g);
  Program whole;
  whole.actions = random_losses(g);
  PaperMachine m(&g, Paper{g.rule, arena::Placer()});
  RC_ASSERT(m.start(gradients) == CKPT_OK);
  Simulation s;
  if (simulate(m, gradients, whole.actions, &s)) RC_FAIL(last_error());
  Result<Program> rest = write_backward(g, gradients, m.state(), kAgain[*rc::gen::inRange(0, 4)], {});
  if (!rest.ok()) RC_FAIL(last_error());
  whole.actions.insert(whole.actions.end(), rest->actions.begin(), rest->actions.end());
  check_step(g, gradients, whole, &s);
}

RC_GTEST_PROP(PlanPrograms, RetainedStateSurvivesTwoPasses, ()) {
  const Graph g = GraphMaker(draw(), Kinds{}).make();
  const GradientMap gradients = some_gradients(g);
  PaperMachine m(&g, Paper{g.rule, arena::Placer()});
  RC_ASSERT(m.start(gradients) == CKPT_OK);
  Simulation s;
  if (simulate(m, gradients, random_losses(g), &s)) RC_FAIL(last_error());
  for (int pass = 0; pass < 2; ++pass) {
    const LiveState before = m.state();
    Planned planned;
    const Status status = plan_backward(m, gradients, true, 0, &planned);
    if (status == CKPT_ERROR_CONFLICT) {
      bool conflict = false;
      for (uint32_t i = 0; i < g.node_count(); ++i) conflict |= gradients.runs[i] && !(g.nodes[i].shape->consumed() & g.nodes[i].shape->keep()).empty();
      RC_ASSERT(conflict);
      return;
    }
    if (status) RC_FAIL(last_error());
    if (simulate(m, gradients, planned.program.actions, &s)) RC_FAIL(last_error());
    for (uint32_t i = 0; i < g.node_count(); ++i) {
      const Bits consumed = gradients.runs[i] ? g.nodes[i].shape->consumed() : Bits{};
      RC_ASSERT(m.state().live[i] == before.live[i] - consumed);
    }
    RC_ASSERT(m.state().input_live == before.input_live);
    m.rewind_backward();
  }
}

RC_GTEST_PROP(PlanPrograms, BackwardKeepsToItsBudget, ()) {
  // With groups and marks less may be made again once something has been dropped.
  const bool plain = *rc::gen::arbitrary<bool>();
  Kinds kinds;
  kinds.groups = kinds.marks = !plain;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = some_gradients(g);
  const bool retain = *rc::gen::inRange(0, 3) == 0;
  PaperMachine m(&g, Paper{g.rule, arena::Placer()});
  RC_ASSERT(m.start(gradients) == CKPT_OK);
  Simulation s;
  if (simulate(m, gradients, random_losses(g), &s)) RC_FAIL(last_error());
  m.backend().placer.reset_peaks();
  Planned planned;
  const Status ample = plan_backward(m, gradients, retain, 0, &planned);
  if (ample == CKPT_ERROR_CONFLICT) return;
  if (ample) RC_FAIL(last_error());
  const size_t top = planned.prediction.height;
  const double least = planned.prediction.recompute_seconds;
  if (plan_backward(m, gradients, retain, 1, &planned) == CKPT_OK) return;
  const size_t minimum = planned.minimum_budget;
  RC_ASSERT(minimum <= top);
  for (size_t budget : {minimum, (minimum + top) / 2, top}) {
    if (plan_backward(m, gradients, retain, budget, &planned)) RC_FAIL(last_error());
    RC_ASSERT(planned.prediction.height <= budget);
    if (plain) RC_ASSERT(planned.prediction.recompute_seconds >= least - 1e-9);
    PaperMachine copy = m;
    if (simulate(copy, gradients, planned.program.actions, &s)) RC_FAIL(last_error());
    RC_ASSERT(s.height == planned.prediction.height);
  }
  if (minimum > 0) RC_ASSERT(plan_backward(m, gradients, retain, minimum - 1, &planned) == CKPT_ERROR_BUDGET);
  RC_ASSERT(planned.minimum_budget == minimum);
}

RC_GTEST_PROP(PlanPrograms, ADroppedBoundaryComesBackAlone, ()) {
  const Graph g = GraphMaker(draw(), Kinds{}).make();
  const GradientMap gradients = some_gradients(g);
  PaperMachine m(&g, Paper{g.rule, arena::Placer()});
  RC_ASSERT(m.start(gradients) == CKPT_OK);
  Simulation s;
  if (simulate(m, gradients, random_losses(g), &s)) RC_FAIL(last_error());
  for (uint32_t v = 0; v < g.value_count(); ++v) {
    if (m.value_live(v)) continue;
    Result<Program> p = write_make(g, m.state(), v);
    if (!p.ok()) RC_FAIL(last_error());
    PaperMachine copy = m;
    if (simulate(copy, gradients, p->actions, &s)) RC_FAIL(last_error());
    LiveState want = m.state();
    want.live[g.values[v].producer].set(g.values[v].item);
    RC_ASSERT(copy.state().live == want.live);
  }
}

}  // namespace
}  // namespace ckpt::plan
