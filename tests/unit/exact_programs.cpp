// Programs of the exact planner over random small chains of the machine: the verifier accepts them, the simulator sees the
// planned load to the byte and the planned seconds, brute force is never slower, and classes order as they contain each other.
#include <gtest/gtest.h>

#include "plan/exact/exact.h"
#include "plan/simulate.h"
#include "plan/verify.h"
#include "support/chain_random.h"
#include "support/plan_brute.h"
#include "support/plan_dp.h"

namespace {

using namespace plan_test;
using exact::Answer;
using exact::Planner;

constexpr size_t kEverything = size_t{1} << 40;

void check_answer(const Graph &graph, const GradientMap &gradients, const Answer &a, size_t load, const std::string &what) {
  Verified verified;
  ASSERT_EQ(verify(graph, gradients.roots, a.program.actions, &verified), CKPT_OK) << last_error() << "\n" << what;
  Simulation s;
  ASSERT_EQ(simulate_step(graph, gradients, a.program, arena::Placer(SIZE_MAX / 2), &s), CKPT_OK) << last_error() << "\n" << what;
  EXPECT_EQ(a.load, s.peak) << what;
  EXPECT_EQ(a.load, verified.peak) << what;
  EXPECT_LE(a.load, load) << what;
  EXPECT_NEAR(a.overhead_seconds, s.forward_seconds + s.recompute_seconds - graph.forward_seconds(), 1e-9) << what;
  EXPECT_LE(a.class_bound_seconds, a.overhead_seconds + 1e-9) << what;
  EXPECT_LE(a.universal_bound_seconds, a.class_bound_seconds + 1e-9) << what;
}

// Loads at which something changes: the frontier of sigma's unpruned program, one byte less, and all.
void check_chain(const ChainModel &model, bool with_brute) {
  const Graph graph = graph_of(model);
  const GradientMap gradients = derive_gradients(graph, default_roots(graph));
  const std::string what = text(model);
  auto rotor = Planner::create(graph, gradients, CKPT_CLASS_ROTOR), sigma = Planner::create(graph, gradients, CKPT_CLASS_SIGMA),
       all = Planner::create(graph, gradients, CKPT_CLASS_DEFAULT), late = Planner::create(graph, gradients, CKPT_CLASS_SIGMA_S_W_D);
  ASSERT_TRUE(rotor && sigma && all && late) << what;
  const ChainDp rotor_dp(model, DpClass::rotor), sigma_dp(model, DpClass::sigma);
  EXPECT_EQ(rotor->minimum_load(), rotor_dp.frontier().front().bytes) << what;
  EXPECT_EQ(sigma->minimum_load(), sigma_dp.frontier().front().bytes) << what;
  EXPECT_LE(all->minimum_load(), sigma->minimum_load()) << what;
  Answer a;
  for (Planner *p : {rotor.get(), sigma.get(), all.get()}) {
      if (p->minimum_load() == 0) continue;
      EXPECT_EQ(p->solve(p->minimum_load() - 1, 0, &a), CKPT_ERROR_BUDGET) << what;
    }
  std::vector<size_t> loads{all->minimum_load(), kEverything};
  for (const ChainDp *dp : {&rotor_dp, &sigma_dp})
    for (const ChainDp::Point &p : dp->frontier()) loads.push_back(static_cast<size_t>(p.bytes));
  const bool brute_force = with_brute && Brute::can(graph);
  std::optional<Brute> brute;
  if (brute_force) brute.emplace(graph, default_roots(graph));
  for (size_t load : loads) {
    std::optional<double> least;
    if (brute_force) least = brute->least_seconds(load);
    double last = 1e300;
    for (Planner *p : {rotor.get(), sigma.get(), all.get(), late.get()}) {
      if (load < p->minimum_load()) continue;
      ASSERT_EQ(p->solve(load, 0, &a), CKPT_OK) << what;
      check_answer(graph, gradients, a, load, what);
      EXPECT_EQ(a.status, static_cast<uint32_t>(CKPT_PLAN_OPTIMAL)) << what;
      EXPECT_LE(a.overhead_seconds, last + 1e-9) << what;
      last = a.overhead_seconds;
      if (p == rotor.get()) { EXPECT_EQ(a.overhead_seconds, rotor_dp.least(static_cast<int64_t>(load))) << load << " " << what; }
      if (p == sigma.get()) { EXPECT_EQ(a.overhead_seconds, sigma_dp.least(static_cast<int64_t>(load))) << load << " " << what; }
      if (!brute_force) continue;
      ASSERT_TRUE(least.has_value()) << what;
      const double seconds = *least - graph.backward_seconds() - graph.forward_seconds();
      EXPECT_LE(seconds, a.overhead_seconds + 1e-9) << load << " " << what;
      EXPECT_GE(seconds, a.universal_bound_seconds - 1e-9) << load << " " << what;
    }
  }
}

TEST(ExactPrograms, RandomChains) {
  for (uint64_t seed = 0; seed < 300 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed);
    const auto kind = static_cast<ChainKind>(seed % 4);
    ChainModel model = ChainMaker(&genes, kind).make(1 + static_cast<uint32_t>(seed / 4) % 5, 3);
    if (!valid(model)) continue;
    check_chain(model, model.size() <= 3);
    if (HasFailure()) return;
  }
}

// Whatever of groups, KEEP, RECOMPUTE, whole segments, memory of the caller's, roots and segments that cannot run again a
// random graph has: where it is a chain, programs are right and no worse than brute force allows.
TEST(ExactPrograms, RandomGraphsThatAreChains) {
  uint32_t chains = 0, optimal = 0;
  for (uint64_t seed = 0; seed < 20000 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed);
    RandomGraphLimits limits;
    limits.nodes = 1 + seed % 4;
    limits.slots = 3;
    limits.outputs = 1 + seed / 4 % 2;
    limits.inputs = 1 + seed / 8 % 2;
    limits.in_place = seed % 3 == 0;
    const RandomGraph r = random_graph(&genes, limits);
    const GradientMap gradients = derive_gradients(r.graph, r.roots);
    const std::string what = "seed " + std::to_string(seed);
    double last = 1e300;
    std::optional<Brute> brute;
    for (uint32_t plan_class : {CKPT_CLASS_ROTOR, CKPT_CLASS_SIGMA, CKPT_CLASS_SIGMA_S_W}) {
      auto planner = Planner::create(r.graph, gradients, plan_class);
      if (planner == nullptr) break;
      ++chains;
      if (!brute && Brute::can(r.graph) && seed % 4 == 0) brute.emplace(r.graph, r.roots);
      Answer a;
      const size_t least = planner->minimum_load();
      if (least > 0) {
        EXPECT_EQ(planner->solve(least - 1, 0, &a), CKPT_ERROR_BUDGET) << what;
      }
      for (size_t load : {least, least + least / 4, kEverything}) {
        ASSERT_EQ(planner->solve(load, 0, &a), CKPT_OK) << what;
        check_answer(r.graph, gradients, a, load, what);
        optimal += a.status == CKPT_PLAN_OPTIMAL;
        if (!brute) continue;
        const std::optional<double> seconds = brute->least_seconds(load);
        ASSERT_TRUE(seconds.has_value()) << what;
        double backward = 0;
        for (uint32_t i = 0; i < r.graph.node_count(); ++i) backward += gradients.runs[i] ? r.graph.nodes[i].backward_seconds : 0;
        EXPECT_LE(*seconds - backward - r.graph.forward_seconds(), a.overhead_seconds + 1e-9) << what;
        EXPECT_GE(*seconds - backward - r.graph.forward_seconds(), a.universal_bound_seconds - 1e-9) << what << " load " << load;
      }
      EXPECT_LE(a.overhead_seconds, last + 1e-9) << what;
      last = a.overhead_seconds;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(chains, 2000u / kSlow);
  EXPECT_GT(optimal, chains * 2);
}

}  // namespace
