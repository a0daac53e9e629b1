// Where a plan puts each block: lifetimes against the simulator's live load, places against each other.
#include "plan/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plan/make_plan.h"
#include "support/plan_random.h"

namespace {

using namespace ckpt;
using namespace ckpt::plan;
using plan_test::Genes;
using plan_test::GraphMaker;
using plan_test::RandomGraph;

constexpr uint32_t kStrategies[] = {CKPT_STRATEGY_AUTO, CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL};

// Counts plans, and those whose height is their live load.
void check(const RandomGraph &r, uint32_t strategy, size_t *plans = nullptr, size_t *tight = nullptr) {
  const GradientMap gradients = derive_gradients(r.graph, r.roots);
  PlanRequest request;
  request.strategy = strategy;
  Planned planned;
  if (make_plan(r.graph, gradients, request, arena::Placer(), &planned) != CKPT_OK) return;  // full, where nothing can run again
  std::vector<Block> blocks;
  ASSERT_EQ(list_blocks(r.graph, gradients, planned.program, &blocks), CKPT_OK) << last_error();
  ASSERT_EQ(blocks.size(), planned.offsets.size());
  size_t peak = 0, height = 0;
  for (size_t a = 0; a < blocks.size(); ++a) {
    const Block &x = blocks[a];
    ASSERT_LE(x.end_action, planned.program.actions.size());
    if (a > 0) {
      ASSERT_LE(blocks[a - 1].first_action, x.first_action);
    }
    if (x.bytes > 0) height = std::max(height, planned.offsets[a] + x.bytes);
    size_t load = x.bytes;  // when x is taken, and the whole action with it
    const auto lives = [](const Block &b, uint32_t t) { return b.first_action <= t && t < std::max(b.end_action, b.first_action + 1); };
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (a == b) continue;
      const Block &y = blocks[b];
      if (lives(y, x.first_action)) load += y.bytes;
      if (x.bytes == 0 || y.bytes == 0 || !(lives(y, x.first_action) || lives(x, y.first_action))) continue;
      ASSERT_TRUE(planned.offsets[a] + x.bytes <= planned.offsets[b] || planned.offsets[b] + y.bytes <= planned.offsets[a]) << a << " and " << b;
    }
    peak = std::max(peak, load);
  }
  EXPECT_EQ(peak, planned.prediction.peak);
  EXPECT_EQ(height, planned.prediction.height);
  if (plans == nullptr) return;
  ++*plans;
  *tight += planned.prediction.height == planned.prediction.peak;
}

RC_GTEST_PROP(PlanLayout, BlocksThatLiveTogetherLieApart, (const std::vector<uint32_t> &numbers)) {
  Genes genes(numbers);
  const RandomGraph r = GraphMaker(&genes, {}).make();
  for (uint32_t s : kStrategies) check(r, s);
}

TEST(PlanLayout, ManyRandomGraphs) {
  size_t bound = 0, all = 0;
  for (uint64_t seed = 0; seed < 300 / (plan_test::kSlow * plan_test::kSlow); ++seed) {
    Genes genes = Genes::endless(seed);
    plan_test::RandomGraphLimits limits;
    limits.nodes = 30;
    limits.plain = seed % 2 == 0;
    const RandomGraph r = GraphMaker(&genes, limits).make();
    for (uint32_t s : kStrategies) check(r, s, &all, &bound);
  }
  // Packing reaches the live load on checkpoint programs.
  EXPECT_EQ(bound, all);
}

}  // namespace
