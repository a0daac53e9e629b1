// From request to plan: budgets, recordings in flight, and a backward pass from whatever is live.
#include "plan/make_plan.h"

#include <gtest/gtest.h>

#include "plan/tighten.h"
#include "unit/plan_chains.h"

namespace ckpt::plan {
namespace {

using testing::ChainOf;
using testing::Segment;
using testing::text_of;

Status plan(const Graph &g, const PlanRequest &r, Planned *out) { return make_plan(g, derive_gradients(g, default_roots(g)), r, arena::Placer(), out); }

PlanRequest request(uint32_t strategy, uint32_t k = 0, size_t budget = 0, uint32_t in_flight = 1) {
  PlanRequest r;
  r.strategy = strategy;
  r.k = k;
  r.budget = budget;
  r.in_flight = in_flight;
  return r;
}

const Segment kPlain;

// Heights by hand: see plan_generate.cpp; each group of UNIFORM is one such chain beside what lies before it.
TEST(PlanMake, FixedStrategiesOfThree) {
  const ChainOf g(3, kPlain);
  struct Want {
    uint32_t strategy, k;
    size_t peak;
    double again;
  };
  for (const Want &w : {Want{CKPT_STRATEGY_STORE_ALL, 0, 15, 0}, {CKPT_STRATEGY_EVERY_SEGMENT, 0, 9, 3}, {CKPT_STRATEGY_UNIFORM, 1, 9, 3}, {CKPT_STRATEGY_UNIFORM, 3, 15, 5},
                        {CKPT_STRATEGY_UNIFORM, 100, 15, 5}, {CKPT_STRATEGY_FULL, 0, 9, 9}, {CKPT_STRATEGY_BLOCK, 3, 9, 3}, {CKPT_STRATEGY_BLOCK, 9, 9, 3}}) {
    Planned p;
    ASSERT_EQ(plan(g, request(w.strategy, w.k), &p), CKPT_OK) << last_error();
    EXPECT_EQ(p.prediction.peak, w.peak) << w.strategy;
    EXPECT_EQ(p.prediction.recompute_seconds, w.again) << w.strategy;
    EXPECT_EQ(p.strategy, w.strategy);
    EXPECT_EQ(p.k, w.k);
    EXPECT_EQ(p.minimum_budget, p.prediction.height);
  }
}

TEST(PlanMake, SqrtIsUniformWithTheRootRoundedUp) {
  for (auto [n, k] : {std::pair{1u, 1u}, {2u, 2u}, {3u, 2u}, {4u, 2u}, {5u, 3u}, {10u, 4u}, {100u, 10u}}) {
    Planned a, b;
    const ChainOf g(n, kPlain);
    ASSERT_EQ(plan(g, request(CKPT_STRATEGY_SQRT), &a), CKPT_OK);
    ASSERT_EQ(plan(g, request(CKPT_STRATEGY_UNIFORM, k), &b), CKPT_OK);
    EXPECT_EQ(a.program.actions, b.program.actions) << n;
  }
}

TEST(PlanMake, BudgetsAreKeptToTheByte) {
  const ChainOf g(10, kPlain);
  Planned p;
  for (uint32_t strategy : {CKPT_STRATEGY_AUTO, CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) {
    EXPECT_EQ(plan(g, request(strategy, 0, 1), &p), CKPT_ERROR_BUDGET);
    const size_t minimum = p.minimum_budget;
    EXPECT_NE(std::string(last_error()).find("the smallest budget that works is " + std::to_string(minimum)), std::string::npos) << last_error();
    EXPECT_EQ(plan(g, request(strategy, 0, minimum), &p), CKPT_OK) << last_error();
    EXPECT_LE(p.prediction.height, minimum);
    EXPECT_EQ(plan(g, request(strategy, 0, minimum - 1), &p), CKPT_ERROR_BUDGET);
    size_t found = 0;
    EXPECT_EQ(find_minimum_budget(g, derive_gradients(g, default_roots(g)), request(strategy, 0, 77), arena::Placer(), &found), CKPT_OK);
    EXPECT_EQ(found, minimum);
  }
}

TEST(PlanMake, SizesAreRoundedUpAndSoIsWhatABudgetMustHold) {
  ChainOf g(3, kPlain);
  g.rule.alignment_bytes = 256;
  Planned p;
  ASSERT_EQ(plan(g, request(CKPT_STRATEGY_STORE_ALL), &p), CKPT_OK);
  EXPECT_EQ(p.prediction.peak, 6u * 256);
  EXPECT_EQ(plan(g, request(CKPT_STRATEGY_STORE_ALL, 0, 6 * 256 + 255), &p), CKPT_OK);
  EXPECT_EQ(plan(g, request(CKPT_STRATEGY_STORE_ALL, 0, 6 * 256 - 1), &p), CKPT_ERROR_BUDGET);
}

TEST(PlanMake, WhatLivesBesideTheStepCounts) {
  const ChainOf g(3, kPlain);
  arena::Placer beside;
  beside.allocate(100, Side::low);
  Planned p;
  PlanRequest r = request(CKPT_STRATEGY_STORE_ALL);
  ASSERT_EQ(make_plan(g, derive_gradients(g, default_roots(g)), r, beside, &p), CKPT_OK);
  EXPECT_EQ(p.prediction.peak, 115u);
  beside.set_capacity(50);  // what it is bounded by now is no matter of the plan's
  beside.set_limit(50);
  ASSERT_EQ(make_plan(g, derive_gradients(g, default_roots(g)), r, beside, &p), CKPT_OK);
  EXPECT_EQ(p.prediction.peak, 115u);
}

// Two in flight: 13 bytes of one are held while the other runs (15 at most).
TEST(PlanMake, RecordingsInFlight) {
  const ChainOf g(3, kPlain);
  for (uint32_t k : {1u, 2u, 3u, 5u}) {
    Planned p;
    ASSERT_EQ(plan(g, request(CKPT_STRATEGY_STORE_ALL, 0, 0, k), &p), CKPT_OK);
    EXPECT_EQ(p.prediction.peak, 15u);
    EXPECT_EQ(p.prediction.held, 13u);
    EXPECT_GE(p.prediction.height, 13 * (k - 1) + 15) << k;
    EXPECT_LE(p.prediction.height, 13 * (k - 1) + 15 + 3 * k) << k;
  }
}

TEST(PlanMake, RecordingsInFlightBeyondAllAddresses) {
  Segment s;
  s.output_bytes = size_t{1} << 59;
  const ChainOf g(2, s);
  for (uint32_t strategy : {CKPT_STRATEGY_AUTO, CKPT_STRATEGY_STORE_ALL}) {
    PlanRequest r = request(strategy);
    r.in_flight = 4096;
    Planned p;
    EXPECT_EQ(plan(g, r, &p), CKPT_ERROR_OVERFLOW);
    EXPECT_NE(std::string(last_error()).find("4096 recordings in flight take more than"), std::string::npos) << last_error();
    std::vector<CurvePoint> curve;
    EXPECT_EQ(find_curve(g, derive_gradients(g, default_roots(g)), r, 4, &curve), CKPT_ERROR_OVERFLOW);
    size_t minimum = 0;
    EXPECT_EQ(find_minimum_budget(g, derive_gradients(g, default_roots(g)), r, arena::Placer(), &minimum), CKPT_ERROR_OVERFLOW);
  }
}

TEST(PlanMake, NoSegments) {
  const ChainOf g(0, kPlain);
  Planned p;
  EXPECT_EQ(plan(g, request(CKPT_STRATEGY_AUTO), &p), CKPT_ERROR_INVALID_ARGUMENT);
}

TEST(PlanMake, TooManyActions) {
  const ChainOf g(70'000, kPlain);
  Planned p;
  EXPECT_EQ(plan(g, request(CKPT_STRATEGY_FULL), &p), CKPT_ERROR_OVERFLOW);
  EXPECT_NE(std::string(last_error()).find("70000 segments"), std::string::npos) << last_error();
}

// ---- backward from what is live ----

PaperMachine after_forward(const Graph &g, bool slots, bool boundaries) {
  PaperMachine m(&g, Paper{g.rule, arena::Placer()});
  EXPECT_EQ(m.start(derive_gradients(g, default_roots(g))), CKPT_OK);
  for (uint32_t i = 0; i < g.node_count(); ++i) {
    PaperMachine::Run run;
    const Shape &s = *g.nodes[i].shape;
    EXPECT_EQ(m.begin_forward(i, s.outputs() | (slots ? s.needed() : Bits{}) | s.keep(), {}, &run), CKPT_OK) << last_error();
    m.end_forward(run);
    if (boundaries || i == 0) continue;
    EXPECT_EQ(m.free_value(i), CKPT_OK);
  }
  m.backend().placer.reset_peaks();
  return m;
}

TEST(PlanBackward, EverythingIsThere) {
  const ChainOf g(3, kPlain);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const PaperMachine m = after_forward(g, true, true);
  Planned p;
  ASSERT_EQ(plan_backward(m, gradients, false, 0, &p), CKPT_OK) << last_error();
  EXPECT_EQ(text_of(g, p.program), "free3 b2 free2 b1 free1 b0");
  EXPECT_EQ(p.prediction.recompute_count, 0u);
}

TEST(PlanBackward, RetainedBytesStayAndCount) {
  const ChainOf g(2, kPlain);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PaperMachine m = after_forward(g, true, true);
  Planned p;
  ASSERT_EQ(plan_backward(m, gradients, true, 0, &p), CKPT_OK) << last_error();
  EXPECT_EQ(text_of(g, p.program), "b1:a,o b0:a,o");
  EXPECT_EQ(p.prediction.peak, 12u);  // two slots, two boundaries, one gradient
  // One byte less: something goes, and comes back when its backward needs it.
  ASSERT_EQ(plan_backward(m, gradients, true, 11, &p), CKPT_OK) << last_error();
  EXPECT_GT(p.prediction.recompute_count, 0u);
  EXPECT_LE(p.prediction.height, 11u);
}

TEST(PlanBackward, ConsumedSlotsAreNotRetained) {
  Segment s = kPlain;
  s.slots[0].flags = CKPT_SLOT_CONSUMED;
  const ChainOf g(2, s);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PaperMachine m = after_forward(g, true, true);
  Planned p;
  ASSERT_EQ(plan_backward(m, gradients, true, 0, &p), CKPT_OK) << last_error();
  EXPECT_EQ(text_of(g, p.program), "b1:o b0:o");
  Simulation sim;
  ASSERT_EQ(simulate(m, gradients, p.program.actions, &sim), CKPT_OK);
  m.rewind_backward();
  ASSERT_EQ(plan_backward(m, gradients, true, 0, &p), CKPT_OK) << last_error();
  EXPECT_EQ(text_of(g, p.program), "f1:a b1:o f0:a b0:o");
}

TEST(PlanBackward, ConsumedAndMadeOnceCannotBeRetained) {
  Segment s = kPlain;
  s.slots[0].flags = CKPT_SLOT_CONSUMED | CKPT_SLOT_KEEP;
  const ChainOf kept(2, s);
  Planned p;
  EXPECT_EQ(plan_backward(after_forward(kept, true, true), derive_gradients(kept, default_roots(kept)), true, 0, &p), CKPT_ERROR_CONFLICT);
  EXPECT_NE(std::string(last_error()).find("slot 'a' of segment 'seg'"), std::string::npos) << last_error();
  EXPECT_EQ(plan_backward(after_forward(kept, true, true), derive_gradients(kept, default_roots(kept)), false, 0, &p), CKPT_OK);
  s.slots[0].flags = CKPT_SLOT_CONSUMED;
  s.replayable = false;
  const ChainOf inlined(2, s);
  EXPECT_EQ(plan_backward(after_forward(inlined, true, true), derive_gradients(inlined, default_roots(inlined)), true, 0, &p), CKPT_ERROR_CONFLICT);
}

TEST(PlanBackward, ShortOfMemoryItDropsByDegrees) {
  const ChainOf g(20, kPlain);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const PaperMachine m = after_forward(g, true, true);
  const size_t live = m.backend().placer.in_use();
  Planned p;
  ASSERT_EQ(plan_backward(m, gradients, false, 0, &p), CKPT_OK);
  const size_t top = p.prediction.height;
  ASSERT_EQ(plan_backward(m, gradients, false, top - 1, &p), top - 1 < live ? CKPT_ERROR_BUDGET : CKPT_OK) << last_error();
  // What is live already is the least that any program can do with.
  ASSERT_EQ(plan_backward(m, gradients, false, 1, &p), CKPT_ERROR_BUDGET);
  EXPECT_EQ(p.minimum_budget, live);
  ASSERT_EQ(plan_backward(m, gradients, false, live, &p), CKPT_OK);
}

TEST(PlanBackward, FromNothingButTheInput) {
  const ChainOf g(3, kPlain);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PaperMachine m = after_forward(g, false, false);
  ASSERT_EQ(m.free_value(3), CKPT_OK);
  m.backend().placer.reset_peaks();
  Planned p;
  ASSERT_EQ(plan_backward(m, gradients, false, 15, &p), CKPT_OK) << last_error();
  EXPECT_EQ(text_of(g, p.program), "f0:a,o f1:a,o f2:a b2 free2 b1 free1 b0");
  ASSERT_EQ(plan_backward(m, gradients, false, 14, &p), CKPT_OK) << last_error();
  EXPECT_EQ(text_of(g, p.program), "f0:o f1:o f2:a b2 free2 f1:a b1 free1 f0:a b0");
}

}  // namespace
}  // namespace ckpt::plan
