// The oracles of the exact planner, against each other and against what is known: nothing here looks at the planner.
#include <gtest/gtest.h>

#include "plan/verify.h"
#include "support/plan_brute.h"
#include "support/plan_dp.h"
#include "support/stage_dp.h"

namespace plan_test {
namespace {

constexpr StageClass kStageClasses[] = {StageClass::rotor, StageClass::sigma, StageClass::sigma_d, StageClass::sigma_d_e};

TEST(Stages, KnownInstances) {
  for (size_t row = 0; row < stage_known().size(); ++row) {
    SCOPED_TRACE(row);
    const StageKnown &known = stage_known()[row];
    for (StageClass c : kStageClasses) EXPECT_EQ(StageDp(known.chain, c).least(known.bytes).value_or(-1), known.least[static_cast<size_t>(c)]) << static_cast<int>(c);
    EXPECT_EQ(stage_brute_force(known.chain, known.bytes).value_or(-1), known.any_schedule);
  }
}

TEST(Stages, RevolveAndMixedCheckpoints) {
  const int64_t revolve[][3] = {{10, 3, 15}, {50, 7, 105}, {100, 5, 316}, {250, 10, 672}, {1000, 10, 3636}, {10000, 25, 36346}};
  for (const auto &[n, s, extra] : revolve) EXPECT_EQ(revolve_extra(n, s), extra) << n << ", " << s;
  const int64_t mixed[][3] = {{10, 3, 19}, {50, 7, 116}, {100, 5, 352}, {250, 10, 717}};
  Mixed p;
  for (const auto &[n, s, forwards] : mixed) EXPECT_EQ(p.forwards(n, s), forwards) << n << ", " << s;
  for (uint32_t n = 1; n < 24; ++n) {
    StageDp equal(equal_steps(n, 1), StageClass::rotor), large(equal_steps(n, 1000), StageClass::rotor);
    for (int64_t s = 1; s < 12; ++s) {
      EXPECT_EQ(equal.least(s + 1).value_or(-1), p.forwards(n, s) - n) << n << ", " << s;
      EXPECT_EQ(large.least(1000 + s).value_or(-1), revolve_extra(n, s)) << n << ", " << s;
    }
  }
}

int64_t price(const Brute &brute, const ChainModel &chain, int64_t bytes) {
  const auto best = brute.least_seconds(static_cast<size_t>(bytes));
  return best ? static_cast<int64_t>(*best) - chain.forward_cost() - chain.backward_cost() : -1;
}

TEST(Dp, ItsPointsArePrograms) {
  uint32_t points = 0;
  for (uint64_t seed = 0; seed < 1600 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xd9ull << 32);
    ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(1 + genes.below(5), 3);
    if (seed % 5 == 0)
      for (ModelSegment &s : chain.segments)
        for (ModelSlot &k : s.slots) k.keep = genes.one_in(3);
    const Graph graph = graph_of(chain);
    const std::vector<Root> roots = default_roots(graph);
    for (DpClass c : {DpClass::rotor, DpClass::sigma, DpClass::calls}) {
      const ChainDp dp(chain, c);
      for (const ChainDp::Point &p : dp.frontier()) {
        Verified v;
        ASSERT_EQ(verify(graph, roots, dp.program(p).actions, &v), CKPT_OK) << last_error() << "\nseed " << seed << "\n" << text(chain);
        ASSERT_EQ(static_cast<int64_t>(v.peak), p.bytes) << "seed " << seed << "\n" << text(chain);
        ASSERT_EQ(v.seconds, static_cast<double>(p.cost + chain.forward_cost() + chain.backward_cost())) << "seed " << seed << "\n" << text(chain);
        ++points;
      }
    }
  }
  EXPECT_GT(points, 4000u / kSlow);
}

TEST(Dp, IsNeverBelowBruteForce) {
  uint32_t points = 0, better = 0, optimal = 0, optimal_in_calls = 0, least_above = 0, least_above_in_calls = 0, chains = 0;
  for (uint64_t seed = 0; seed < 1200 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xb7ull << 32);
    const ChainModel chain = ChainMaker(&genes, static_cast<ChainKind>(seed % 4)).make(1 + genes.below(3), 2);
    const Graph graph = graph_of(chain);
    if (!Brute::can(graph)) continue;
    const Brute brute(graph, default_roots(graph));
    const ChainDp rotor(chain, DpClass::rotor), sigma(chain, DpClass::sigma), calls(chain, DpClass::calls);
    ASSERT_GE(calls.frontier()[0].bytes, static_cast<int64_t>(brute.least_peak()));
    ++chains;
    least_above += sigma.frontier()[0].bytes > static_cast<int64_t>(brute.least_peak());
    least_above_in_calls += calls.frontier()[0].bytes > static_cast<int64_t>(brute.least_peak());
    for (const ChainDp::Point &p : rotor.frontier()) {
      const int64_t richer = sigma.least(p.bytes), richest = calls.least(p.bytes), best = price(brute, chain, p.bytes);
      ASSERT_LE(richer, p.cost) << text(chain);
      ASSERT_LE(richest, richer) << text(chain);
      ASSERT_GE(richest, best) << text(chain);
      ++points;
      better += richer < p.cost;
      optimal += richer == best;
      optimal_in_calls += richest == best;
    }
  }
  std::printf("%u points of class rotor: sigma is cheaper in %u, optimal in %u, with several calls in %u; least load of %u chains above the least of all: sigma %u, with several calls %u\n", points, better, optimal,
              optimal_in_calls, chains, least_above, least_above_in_calls);
  EXPECT_LE(least_above_in_calls * 100, chains);
  EXPECT_GT(better, 0u);
  EXPECT_GT(optimal, points / 2);
}

// Stages are chains of segments that run as a whole; the machine can do what they can.
TEST(Dp, StagesOnTheMachine) {
  for (size_t row = 0; row < stage_known().size(); ++row) {
    const StageKnown &known = stage_known()[row];
    const ChainModel chain = machine_of(known.chain);
    const int64_t rotor = ChainDp(chain, DpClass::rotor).least(known.bytes), sigma = ChainDp(chain, DpClass::sigma).least(known.bytes);
    EXPECT_EQ(rotor, known.least[0]);
    EXPECT_EQ(sigma, known.least[1]);
  }
}

}  // namespace
}  // namespace plan_test
