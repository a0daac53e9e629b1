// Explanations by hand, and repaired programs.
#include "plan/explain.h"

#include <gtest/gtest.h>

#include "plan/make_plan.h"
#include "plan/verify.h"
#include "support/plan_random.h"
#include "unit/plan_chains.h"

namespace ckpt::plan {
namespace {

using testing::ChainOf;
using testing::Segment;

struct Explained {
  Explained(const Graph &graph, uint32_t strategy, size_t budget) : gradients(derive_gradients(graph, default_roots(graph))) {
    PlanRequest request;
    request.strategy = strategy;
    request.budget = budget;
    EXPECT_EQ(make_plan(graph, gradients, request, arena::Placer(), &planned), CKPT_OK) << last_error();
    const Explainer explainer(graph, gradients, planned.program, budget);
    for (uint32_t k = 0; k < explainer.size(); ++k) {
      all.emplace_back();
      EXPECT_EQ(explainer.explain(k, &all.back()), CKPT_OK) << last_error();
    }
  }
  GradientMap gradients;
  Planned planned;
  std::vector<ckpt_explanation> all;
};

// Three segments with a slot of 3 bytes (1 s) and an output of 2 (1 s); backward reads slot and input. Store-all peaks at 15:
// 3 slots, 2 boundaries and what the last segment's forward makes.
TEST(PlanExplain, StoreAllSaysWhatDroppingASlotCosts) {
  const ChainOf g(3, Segment{});
  const Explained e(g, CKPT_STRATEGY_STORE_ALL, 0);
  ASSERT_EQ(e.all.size(), 7u);  // slot and output of each, and the input
  EXPECT_EQ(e.all[0].what, uint32_t{CKPT_PLACED_SLOT});
  EXPECT_EQ(e.all[0].kept, 1u);
  EXPECT_EQ(e.all[0].because, uint32_t{CKPT_BECAUSE_FASTER});
  EXPECT_EQ(e.all[0].seconds_change, 1);  // one slot is made again
  EXPECT_EQ(e.all[0].peak_change, -3);
  EXPECT_EQ(e.all[1].what, uint32_t{CKPT_PLACED_OUTPUT});
  EXPECT_EQ(e.all[1].seconds_change, 1);  // its slot is there: only the output
  EXPECT_EQ(e.all[1].peak_change, -2);
  EXPECT_EQ(e.all[4].because, uint32_t{CKPT_BECAUSE_ALREADY});  // the last slot: backward comes at once
  EXPECT_EQ(e.all[6].what, uint32_t{CKPT_PLACED_INPUT});
  EXPECT_EQ(e.all[6].because, uint32_t{CKPT_BECAUSE_MARKED});
  EXPECT_EQ(e.all[6].bytes, 0u);  // the caller's
}

TEST(PlanExplain, WhatABudgetKeptOut) {
  const ChainOf g(3, Segment{});
  const Explained e(g, CKPT_STRATEGY_EVERY_SEGMENT, 9);
  EXPECT_EQ(e.all[0].kept, 0u);
  EXPECT_EQ(e.all[0].because, uint32_t{CKPT_BECAUSE_BUDGET});
  EXPECT_EQ(e.all[0].seconds_change, -1);
  EXPECT_EQ(e.all[0].peak_change, 3);
  // The same program without a budget: only the search is to blame.
  const Explained free(g, CKPT_STRATEGY_EVERY_SEGMENT, 0);
  EXPECT_EQ(free.all[0].because, uint32_t{CKPT_BECAUSE_SEARCH});
}

TEST(PlanExplain, MarkedAndUnused) {
  Segment s;
  s.slots = {{"t", 3, 1, {}, CKPT_SLOT_TRANSIENT}, {"k", 4, 1, {0}, CKPT_SLOT_KEEP}, {"r", 5, 1, {1}, CKPT_SLOT_RECOMPUTE}};
  s.output_reads = {2};
  const ChainOf g(2, s);
  const Explained e(g, CKPT_STRATEGY_STORE_ALL, 0);
  EXPECT_EQ(e.all[0].because, uint32_t{CKPT_BECAUSE_UNUSED});
  EXPECT_EQ(e.all[0].kept, 0u);
  EXPECT_EQ(e.all[1].because, uint32_t{CKPT_BECAUSE_MARKED});
  EXPECT_EQ(e.all[1].kept, 1u);
  EXPECT_EQ(e.all[2].because, uint32_t{CKPT_BECAUSE_MARKED});
  EXPECT_EQ(e.all[2].kept, 0u);
}

// Whatever the graph and the plan: what an explanation simulates is a valid program.
TEST(PlanExplain, RandomGraphsUnderEveryStrategy) {
  for (uint64_t seed = 0; seed < 400 / plan_test::kSlow; ++seed) {
    plan_test::Genes genes = plan_test::Genes::endless(seed);
    const plan_test::RandomGraph r = plan_test::GraphMaker(&genes, {.nodes = 5}).make();
    const GradientMap gradients = derive_gradients(r.graph, r.roots);
    for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT}) {
      PlanRequest request;
      request.strategy = strategy;
      Planned planned;
      ASSERT_EQ(make_plan(r.graph, gradients, request, arena::Placer(), &planned), CKPT_OK) << last_error();
      const Explainer explainer(r.graph, gradients, planned.program, 0);
      for (uint32_t k = 0; k < explainer.size(); ++k) {
        ckpt_explanation e;
        ASSERT_EQ(explainer.explain(k, &e), CKPT_OK) << "seed " << seed << " strategy " << strategy << " item " << k << ": " << last_error();
      }
    }
  }
}

// What is taken out of a program comes back where it is missing.
TEST(PlanExplain, RepairMakesAgainWhatIsMissing) {
  const ChainOf g(4, Segment{});
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PlanRequest request;
  request.strategy = CKPT_STRATEGY_STORE_ALL;
  Planned planned;
  ASSERT_EQ(make_plan(g, gradients, request, arena::Placer(), &planned), CKPT_OK);
  Program holes;
  for (Action a : planned.program.actions) {
    if (a.kind == ActionKind::forward) a.want -= Bits::one(0);
    holes.actions.push_back(a);
    if (a.kind == ActionKind::forward && a.index > 0) holes.actions.push_back({ActionKind::free, a.index, {}, {}});
  }
  EXPECT_EQ(verify(g, default_roots(g), holes.actions, nullptr), CKPT_ERROR_INVALID_PLAN);
  Result<Program> whole = repair(g, gradients, holes);
  ASSERT_TRUE(whole.ok()) << last_error();
  EXPECT_EQ(verify(g, default_roots(g), whole->actions, nullptr), CKPT_OK) << last_error();
}

}  // namespace
}  // namespace ckpt::plan
