// Programs of every strategy against the best program that exists, found by trying all (up to three segments).
#include <gtest/gtest.h>

#include "plan/make_plan.h"
#include "support/plan_brute.h"
#include "support/plan_walk.h"

namespace plan_test {
namespace {

struct Totals {
  uint32_t questions = 0, optimal = 0, instances = 0;
  double gap = 0, worst = 0, peak_ratio = 0, worst_ratio = 1;

  void print(const char *name) const {
    std::printf("%-32s %4u instances, %5u budgets: %5.1f %% optimal, mean gap %.4f forwards (worst %.3f); least budget %.4f of the least peak (worst %.3f)\n", name, instances, questions,
                100.0 * optimal / std::max(1u, questions), gap / std::max(1u, questions), worst, peak_ratio / std::max(1u, instances), worst_ratio);
  }
};

double forward_pass(const Graph &graph) {
  double sum = 0;
  for (uint32_t i = 0; i < graph.node_count(); ++i)
    for (uint32_t k = 0; k < graph.nodes[i].shape->item_count(); ++k) sum += graph.seconds_of(i, k);
  return sum;
}

void check_strategy(const RandomGraph &r, const Brute &brute, const PlanRequest &request, size_t least_peak, Planned *planned) {
  const GradientMap gradients = derive_gradients(r.graph, r.roots);
  ASSERT_EQ(make_plan(r.graph, gradients, request, arena::Placer(), planned), CKPT_OK) << last_error();
  ASSERT_EQ(disagreement(r, planned->program.actions), "");
  Verified v;
  ASSERT_EQ(verify(r.graph, r.roots, planned->program.actions, &v), CKPT_OK) << last_error();
  EXPECT_EQ(v.peak, planned->prediction.peak);
  EXPECT_EQ(v.held, planned->prediction.held);
  EXPECT_EQ(v.seconds, planned->prediction.seconds());
  EXPECT_GE(v.peak, least_peak);
  const auto best = brute.least_seconds(v.peak);
  ASSERT_TRUE(best.has_value());
  EXPECT_LE(*best, v.seconds);
}

void check_auto(const RandomGraph &r, const Brute &brute, size_t least_peak, Totals *totals) {
  const GradientMap gradients = derive_gradients(r.graph, r.roots);
  PlanRequest request;
  size_t least = 0;
  ASSERT_EQ(find_minimum_budget(r.graph, gradients, request, arena::Placer(), &least), CKPT_OK) << last_error();
  ASSERT_GE(least, least_peak);
  Planned top;
  check_strategy(r, brute, request, least_peak, &top);
  const double ratio = least_peak == 0 ? 1 : static_cast<double>(least) / static_cast<double>(least_peak);
  totals->peak_ratio += ratio;
  totals->worst_ratio = std::max(totals->worst_ratio, ratio);
  ++totals->instances;
  for (uint32_t part = 0; part <= 3; ++part) {
    request.budget = least + (top.prediction.height - least) * part / 3;
    if (request.budget == 0) continue;  // no budget at all
    Planned planned;
    check_strategy(r, brute, request, least_peak, &planned);
    const auto best = brute.least_seconds(request.budget);
    ASSERT_TRUE(best.has_value());
    const double gap = (planned.prediction.seconds() - *best) / std::max(forward_pass(r.graph), 1e-9);
    EXPECT_GE(gap, 0);
    totals->gap += gap;
    totals->worst = std::max(totals->worst, gap);
    totals->optimal += gap <= 1e-12;
    ++totals->questions;
  }
}

// By number of segments, as many instances of each.
void sweep(const char *name, const RandomGraphLimits &limits, uint32_t wanted, uint64_t salt) {
  Totals totals[3];
  for (uint64_t seed = 0; seed < 60 * wanted; ++seed) {
    Genes genes = Genes::endless(seed ^ salt << 32);
    const RandomGraph r = random_graph(&genes, limits);
    Totals &t = totals[r.graph.node_count() - 1];
    if (!Brute::can(r.graph) || t.instances == wanted) continue;
    SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed) + "\n" + text(r));
    const Brute brute(r.graph, r.roots);
    const size_t least_peak = brute.least_peak();
    check_auto(r, brute, least_peak, &t);
    for (uint32_t strategy = CKPT_STRATEGY_STORE_ALL; strategy <= CKPT_STRATEGY_FULL; ++strategy) {
      PlanRequest request;
      request.strategy = strategy;
      if (strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK) request.k = 1 + genes.below(3);
      Planned planned;
      check_strategy(r, brute, request, least_peak, &planned);
    }
    if (::testing::Test::HasFailure()) return;
  }
  for (uint32_t n = 0; n < 3; ++n) {
    EXPECT_EQ(totals[n].instances, wanted);
    EXPECT_LT(totals[n].gap / totals[n].questions, 0.1);  // what AUTO is worth: measured 0 to 0.035
    totals[n].print((std::string(name) + ", n = " + std::to_string(n + 1)).c_str());
  }
}

TEST(Brute, AgreesWithItsOwnPrograms) {
  // Any legal program is at least as slow as the best one within its peak.
  uint32_t whole = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xb0b00000000ull);
    const RandomGraph r = random_graph(&genes, {.nodes = 3, .slots = 2});
    if (!Brute::can(r.graph)) continue;
    Walk walk(r, &genes);
    const std::vector<Action> actions = walk.program(genes.below(20));
    if (!walk.whole()) continue;
    const Brute brute(r.graph, r.roots);
    ASSERT_GE(walk.reference().peak(), brute.least_peak()) << "seed " << seed << "\n" << text(r) << text(actions);
    const auto best = brute.least_seconds(walk.reference().peak());
    ASSERT_TRUE(best.has_value()) << "seed " << seed;
    ASSERT_LE(*best, walk.reference().seconds()) << "seed " << seed << "\n" << text(r) << text(actions);
    ++whole;
  }
  EXPECT_GT(whole, 150u);
}

TEST(Brute, IsNeverBeaten) {
  sweep("graphs with every flag", {.nodes = 3, .slots = 3}, 80 / kSlow, 1);
  sweep("graphs that can run again", {.nodes = 3, .slots = 3, .not_replayable = false, .read_at_end = false, .rare_roots = false}, 80 / kSlow, 2);
  sweep("plain chains", {.nodes = 3, .slots = 3, .plain = true}, 80 / kSlow, 3);
}

}  // namespace
}  // namespace plan_test
