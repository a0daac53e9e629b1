// The exact planner's default class against the best program that the machine has at all, found by trying everything (up to
// three segments): how far off it is, by kind of chain, and that nothing it claims is beyond what is possible.
#include <gtest/gtest.h>

#include "plan/exact/least.h"
#include "plan/make_plan.h"
#include "support/exact_checks.h"
#include "support/plan_brute.h"
#include "support/plan_dp.h"
#include "support/plan_walk.h"

namespace plan_test {
namespace {

struct Totals {
  uint32_t chains = 0, questions = 0, optimal = 0, minimum_above = 0, calls_above = 0, named_above = 0;
  double gap = 0, worst = 0;

  void print(const char *name) const {
    std::printf("%-20s %5u chains, %6u budgets: %6.2f %% optimal, mean gap %.5f forwards, worst %.3f; least load above the least of all in %u (several calls of a segment, all tried: %u), the budget that AUTO names in %u\n", name, chains, questions, 100.0 * optimal / std::max(1u, questions),
                gap / std::max(1u, questions), worst, minimum_above, calls_above, named_above);
  }
  void add(const Totals &o) {
    chains += o.chains, questions += o.questions, optimal += o.optimal, minimum_above += o.minimum_above, calls_above += o.calls_above, named_above += o.named_above;
    gap += o.gap, worst = std::max(worst, o.worst);
  }
};

void ask(exact::Planner *planner, const Planning &p, const Brute &brute, size_t load, Totals *totals) {
  exact::Answer a;
  ASSERT_EQ(planner->solve(load, 0, &a), CKPT_OK);
  ASSERT_EQ(wrong_with(a, load, p), "");
  const auto best = brute.least_seconds(load);
  ASSERT_TRUE(best.has_value());
  const double least = *best - p.once();
  ASSERT_GE(a.overhead_seconds, least - p.slack()) << "faster than possible";
  ASSERT_LE(a.universal_bound_seconds, least + p.slack()) << "a bound for all programs that one of them breaks";
  const double gap = (a.overhead_seconds - least) / std::max(p.graph.forward_seconds(), 1.0);
  totals->gap += gap;
  totals->worst = std::max(totals->worst, gap);
  totals->optimal += gap < 1e-9;
  ++totals->questions;
}

// The smallest budget that AUTO names: no class limits it where the items are few.
size_t named_budget(const Planning &p) {
  PlanRequest request;
  request.budget = 1;
  Planned planned;
  EXPECT_EQ(make_plan(p.graph, p.gradients, request, arena::Placer(), &planned), CKPT_ERROR_BUDGET);
  const size_t named = request.budget = planned.minimum_budget;
  EXPECT_EQ(make_plan(p.graph, p.gradients, request, arena::Placer(), &planned), CKPT_OK) << last_error();
  Verified v;
  EXPECT_EQ(verify(p.graph, p.roots, planned.program.actions, &v), CKPT_OK) << last_error();
  EXPECT_LE(v.peak, named);
  return named;
}

// Every state tried by the library, and by the naive machine (which also places outputs over inputs meanwhile).
void check_least_of_all(const Planning &p, size_t least_of_all) {
  const Program program = exact::least_of_all(p.graph, p.gradients);
  if (program.actions.empty()) return;
  Verified v;
  ASSERT_EQ(verify(p.graph, p.roots, program.actions, &v), CKPT_OK) << last_error();
  bool over = false;
  for (const Node &n : p.graph.nodes)
    for (uint32_t k = n.shape->slot_count(); k < n.shape->item_count(); ++k) over |= n.shape->item(k).in_place_input != 0;
  ASSERT_GE(v.peak, least_of_all);
  if (!over) { ASSERT_EQ(v.peak, least_of_all); }
}

void check(const ChainModel &chain, Totals *totals) {
  const Planning p(chain);
  if (!Brute::can(p.graph)) return;
  const Brute brute(p.graph, p.roots);
  const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_DEFAULT);
  ASSERT_NE(planner, nullptr);
  const size_t least = planner->minimum_load(), least_of_all = brute.least_peak();
  ASSERT_GE(least, least_of_all);
  ++totals->chains;
  totals->minimum_above += least > least_of_all;
  ASSERT_NO_FATAL_FAILURE(check_least_of_all(p, least_of_all));
  totals->named_above += named_budget(p) > least_of_all;
  const ChainDp calls(chain, DpClass::calls);
  totals->calls_above += calls.frontier()[0].bytes > static_cast<int64_t>(least_of_all);
  // Where the planner's optimum changes, and where the one of a smaller class does.
  std::set<size_t> loads{least};
  const ChainDp dp(chain, DpClass::sigma);
  for (const ChainDp::Point &point : dp.frontier()) loads.insert(static_cast<size_t>(point.bytes));
  size_t load = *loads.rbegin();
  for (exact::Answer a; load >= least && planner->solve(load, 0, &a) == CKPT_OK; load = a.load - 1) {
    loads.insert(a.load);
    if (a.load == 0) break;
  }
  for (size_t at : loads) ASSERT_NO_FATAL_FAILURE(ask(planner.get(), p, brute, at, totals)) << "at " << at;
}

Totals sweep(ChainKind kind, uint64_t chains) {
  Totals totals;
  for (uint64_t seed = 0; seed < chains; ++seed) {
    Genes genes = Genes::endless(seed ^ (0x3ac0ull + static_cast<uint64_t>(kind)) << 32);
    const ChainModel chain = ChainMaker(&genes, kind).make(seed % 4 == 0 ? 2 : 3, 3);
    SCOPED_TRACE(std::string(name_of(kind)) + ", seed " + std::to_string(seed) + "\n" + text(chain));
    check(chain, &totals);
    if (::testing::Test::HasFatalFailure()) break;
  }
  totals.print(name_of(kind));
  return totals;
}

TEST(ExactOnTheMachine, NearTheBestOfAll) {
  Totals all;
  for (ChainKind kind : {ChainKind::random, ChainKind::clean, ChainKind::sparse, ChainKind::whole}) {
    const Totals totals = sweep(kind, 1000 / (kSlow * kSlow));
    if (HasFatalFailure()) return;
    EXPECT_LE(totals.gap / totals.questions, 0.005) << name_of(kind);
    if (kind == ChainKind::clean) {
      EXPECT_EQ(totals.minimum_above, 0u);
    }
    all.add(totals);
  }
  all.print("all");
  EXPECT_GT(all.chains, 2000u / (kSlow * kSlow));
  // Several forwards of a segment with drops between them are in the tables. What is left are slots that go into memory before
  // the backward of the segment behind, since scratch here and the gradient there would not fit together.
  EXPECT_EQ(all.minimum_above, all.calls_above);
  if (kSlow > 1) return;  // too few chains for shares of a hundredth
  EXPECT_LE(all.minimum_above * 1000, all.chains * 4);
  EXPECT_LE(all.named_above * 1000, all.chains);
}

// Graphs with everything that a segment may have: groups, KEEP and RECOMPUTE, outputs over inputs, several outputs, outputs in
// the caller's memory, segments that cannot run again. Where the planner knows such a graph as a chain, what it says holds.
TEST(ExactOnTheMachine, WithEveryFlag) {
  Totals totals;
  for (uint64_t seed = 0; seed < 3000 / (kSlow * kSlow); ++seed) {
    Genes genes = Genes::endless(seed ^ 0xf1a9ull << 32);
    RandomGraph r = random_graph(&genes, {.nodes = 3, .slots = 3, .outputs = 1 + static_cast<uint32_t>(seed % 2), .inputs = 1});
    if (!Brute::can(r.graph)) continue;
    const std::string described = text(r);
    const Planning p(std::move(r));
    for (uint32_t plan_class : kPlanClasses) {
      const std::unique_ptr<exact::Planner> planner = exact::Planner::create(p.graph, p.gradients, plan_class);
      if (planner == nullptr) break;
      SCOPED_TRACE("class " + std::to_string(plan_class) + ", seed " + std::to_string(seed) + "\n" + described);
      const Brute brute(p.graph, p.roots);
      const size_t least = planner->minimum_load(), least_of_all = brute.least_peak();
      ASSERT_GE(least, least_of_all);
      ASSERT_NO_FATAL_FAILURE(check_least_of_all(p, least_of_all));
      ASSERT_NO_FATAL_FAILURE(ask(planner.get(), p, brute, least, &totals));
      exact::Answer all;
      ASSERT_EQ(planner->solve(size_t{1} << 40, 0, &all), CKPT_OK);
      ASSERT_EQ(wrong_with(all, size_t{1} << 40, p), "");
      ASSERT_NO_FATAL_FAILURE(ask(planner.get(), p, brute, all.load, &totals));
      ASSERT_NO_FATAL_FAILURE(ask(planner.get(), p, brute, least + (all.load - std::min(all.load, least)) / 2, &totals));
      totals.minimum_above += least > least_of_all;
      ++totals.chains;
    }
  }
  totals.print("every flag, 4 classes");
  EXPECT_GT(totals.chains, 500u / (kSlow * kSlow));
}

// Segments of which a run for what they save alone ends early: one kernel makes that and the rest, and the first can also be made by itself.
RandomGraph graph_that_ends_early(uint64_t seed) {
  Genes genes = Genes::endless(seed ^ 0xea51ull << 32);
  const auto number = [&](uint32_t most) { return 1 + genes.below(most); };
  RandomGraph r;
  r.graph.rule.alignment_bytes = 1;
  r.graph.add_input(number(8), 0, true, genes.one_in(2) ? CKPT_GRAD_NONE : CKPT_GRAD_ARENA);
  for (uint32_t i = 0; i < 2 + seed % 2; ++i) {
    const uint32_t early = number(6), late = genes.one_in(8) ? 0 : number(4), extra = genes.one_in(3) ? number(3) : 0;
    std::vector<Item> slots(2 + (extra != 0)), outputs(1);
    const auto set = [](Item *item, const char *name, size_t bytes, uint32_t cost) { item->name = name, item->bytes = bytes, item->cost_seconds = cost; };
    set(&slots[0], "saved", number(9), early);
    slots[0].flags = CKPT_SLOT_ALONE;
    set(&slots[1], "rest", genes.one_in(2) ? 0 : number(3), early + late);
    slots[1].flags = CKPT_SLOT_TRANSIENT;
    if (genes.one_in(2)) slots[1].flags |= CKPT_SLOT_RECOMPUTE;
    slots[0].group = slots[1].group = 1;
    set(&outputs[0], "out", number(8), genes.below(2));
    outputs[0].reads.set(1);
    if (extra != 0) {
      set(&slots[2], "more", number(5), extra);
      slots[2].reads.set(genes.below(2));
      if (genes.one_in(2)) outputs[0].reads.set(2);
    }
    if (genes.one_in(4)) outputs[0].flags |= CKPT_OUTPUT_BACKWARD_READS;
    const uint32_t input_flags = genes.one_in(4) ? uint32_t{CKPT_INPUT_BACKWARD_IGNORES} : 0;
    Result<Shape> shape = Shape::create("n" + std::to_string(i), std::move(slots), std::move(outputs), {input_flags}, genes.below(3), genes.below(3), true, false);
    EXPECT_TRUE(shape.ok()) << last_error();
    r.graph.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
    const uint32_t latest[] = {r.graph.value_count() - 1};
    r.graph.nodes[r.graph.add_node(r.graph.shapes.back().get(), latest, nullptr, nullptr)].backward_seconds = number(6);
  }
  r.roots = default_roots(r.graph);
  return r;
}

TEST(ExactOnTheMachine, KernelsThatMayEndEarly) {
  Totals totals;
  for (uint64_t seed = 0; seed < 1500 / (kSlow * kSlow); ++seed) {
    const Planning p(graph_that_ends_early(seed));
    if (!Brute::can(p.graph)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Brute brute(p.graph, p.roots);
    const std::unique_ptr<exact::Planner> planner = exact::Planner::create(p.graph, p.gradients, CKPT_CLASS_DEFAULT);
    ASSERT_NE(planner, nullptr);
    const size_t least = planner->minimum_load();
    ASSERT_GE(least, brute.least_peak());
    totals.minimum_above += least > brute.least_peak();
    ++totals.chains;
    size_t load = size_t{1} << 40;
    for (exact::Answer a; load >= least && planner->solve(load, 0, &a) == CKPT_OK; load = a.load - 1) {
      ASSERT_NO_FATAL_FAILURE(ask(planner.get(), p, brute, a.load, &totals));
      // What is made at least once bounds every program; a plan with room for all has no gap.
      if (load > a.load && load == size_t{1} << 40) { ASSERT_LE(a.overhead_seconds, a.universal_bound_seconds + p.slack()); }
    }
  }
  totals.print("ends early");
  EXPECT_GT(totals.chains, 1000u / (kSlow * kSlow));
  EXPECT_LE(totals.gap / totals.questions, 0.005);
}

}  // namespace
}  // namespace plan_test
