// Any program goes to C's form and back unchanged, on any graph; names and patterns against plain recursion.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plan/exchange.h"
#include "plan/generate.h"
#include "plan/pattern.h"
#include "plan/verify.h"
#include "property/plan_graphs.h"

namespace ckpt::plan {
namespace {

using testing::GraphMaker;
using testing::Kinds;

constexpr Again kAgain[] = {Again::everything, Again::boundaries, Again::halves, Again::nothing};

RC_GTEST_PROP(PlanExchange, RoundTrip, ()) {
  const Graph g = GraphMaker([](uint32_t low, uint32_t high) { return *rc::gen::inRange(low, high + 1); }, Kinds{}).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Policy p;
  p.again = kAgain[*rc::gen::inRange(0, 4)];
  for (const Node &n : g.nodes) {
    p.keep_slots.emplace_back();
    n.shape->slots().each([&](uint32_t k) {
      if (*rc::gen::arbitrary<bool>()) p.keep_slots.back().set(k);
    });
  }
  for (uint32_t v = 0; v < g.value_count(); ++v) p.keep_value.push_back(*rc::gen::arbitrary<bool>());
  Result<Program> program = write_step(g, gradients, p);
  if (!program.ok()) RC_FAIL(last_error());
  const std::vector<ckpt_action> c = program_to_c(g, program->actions);
  size_t placed = 0;
  for (const Action &a : program->actions) placed += a.in_place.count();
  RC_ASSERT(c.size() == program->actions.size() + placed);
  RC_TAG(placed != 0);
  Result<Program> back = program_from_c("f", g, c);
  if (!back.ok()) RC_FAIL(last_error());
  RC_ASSERT(back->actions == program->actions);
}

// Whatever C hands in: an answer, never a crash.
RC_GTEST_PROP(PlanExchange, NonsenseIsAnsweredWithAStatus, ()) {
  const Graph g = GraphMaker([](uint32_t low, uint32_t high) { return *rc::gen::inRange(low, high + 1); }, Kinds{}).make();
  std::vector<ckpt_action> c(*rc::gen::inRange<size_t>(0, 20));
  for (ckpt_action &a : c) {
    a = {};
    a.kind = *rc::gen::inRange(0u, 4u);
    a.index = *rc::gen::inRange(0u, g.node_count() + 2);
    if (a.kind != CKPT_ACTION_FREE) a.slots[0] = *rc::gen::inRange(0u, 16u);
    if (a.kind == CKPT_ACTION_FORWARD) a.outputs[0] = *rc::gen::inRange(0u, 4u);
  }
  const Result<Program> program = program_from_c("f", g, c);
  if (!program.ok()) {
    RC_ASSERT(program.status() == CKPT_ERROR_INVALID_PLAN);
    return;
  }
  Verified v;
  const Status status = verify(g, default_roots(g), (*program).actions, &v);
  RC_ASSERT(status == CKPT_OK || status == CKPT_ERROR_INVALID_PLAN);
}

bool plainly_matches(std::string_view p, std::string_view t) {
  if (p.empty()) return t.empty();
  if (p[0] == '*') return plainly_matches(p.substr(1), t) || (!t.empty() && plainly_matches(p, t.substr(1)));
  return !t.empty() && (p[0] == '?' || p[0] == t[0]) && plainly_matches(p.substr(1), t.substr(1));
}

RC_GTEST_PROP(PlanPattern, AsPlainRecursionHasIt, ()) {
  const auto pattern = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab*?"))), text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab")));
  const std::string_view p = std::string_view(pattern).substr(0, 10), t = std::string_view(text).substr(0, 12);
  RC_TAG(plainly_matches(p, t));
  RC_ASSERT(matches(p, t) == plainly_matches(p, t));
}

}  // namespace
}  // namespace ckpt::plan
