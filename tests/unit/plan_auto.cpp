// AUTO on graphs for which the answer is known.
#include <gtest/gtest.h>

#include <random>

#include "plan/make_plan.h"
#include "plan/verify.h"
#include "support/slow.h"
#include "unit/plan_chains.h"

namespace ckpt::plan {
namespace {

using testing::ChainOf;
using testing::Segment;

Planned plan(const Graph &g, size_t budget, uint32_t strategy = CKPT_STRATEGY_AUTO) {
  PlanRequest r;
  r.strategy = strategy;
  r.budget = budget;
  Planned p;
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  EXPECT_EQ(make_plan(g, gradients, r, arena::Placer(), &p), CKPT_OK) << last_error();
  Verified v;
  EXPECT_EQ(verify(g, gradients.roots, p.program.actions, &v), CKPT_OK) << last_error();
  EXPECT_EQ(v.peak, p.prediction.peak);
  EXPECT_LE(p.prediction.height, budget != 0 ? budget : SIZE_MAX);
  return p;
}

// A chain whose slots cost 1.00, 1.01, 1.02 ... seconds, but for one.
ChainOf uneven(uint32_t n, uint32_t cheap, double seconds) {
  ChainOf g(0, Segment{});
  for (uint32_t i = 0; i < n; ++i) {
    Segment s;
    s.slots = {{"a", 300, i == cheap ? seconds : 1 + 0.01 * i, {}}, {"b", 200, 5, {0}}};
    s.output_reads = {1};
    s.output_bytes = 100;
    g.append(s);
  }
  return g;
}

TEST(PlanAuto, AmpleMemoryRunsNothingAgain) {
  for (uint32_t n : {1u, 2u, 10u, 200u}) {
    const ChainOf g = uneven(n, n / 2, 0.5);
    const Planned all = plan(g, 0, CKPT_STRATEGY_STORE_ALL);
    for (size_t budget : {size_t{0}, all.prediction.height, all.prediction.height * 10}) {
      const Planned p = plan(g, budget);
      EXPECT_EQ(p.prediction.recompute_count, 0u);
      EXPECT_EQ(p.strategy, uint32_t{CKPT_STRATEGY_STORE_ALL});
      EXPECT_EQ(p.program.actions, all.program.actions);
    }
  }
}

TEST(PlanAuto, OneByteLessCostsTheCheapestSlot) {
  for (uint32_t n : {2u, 10u, 100u}) {
    const ChainOf g = uneven(n, n / 2 - 1, 0.5);
    const Planned p = plan(g, plan(g, 0, CKPT_STRATEGY_STORE_ALL).prediction.height - 1);
    EXPECT_DOUBLE_EQ(p.prediction.recompute_seconds, 0.5) << n;
    EXPECT_EQ(p.prediction.recompute_count, 1u);
  }
}

// One cheap slot is not enough for 301 bytes: two go, and no segment runs whole.
TEST(PlanAuto, ALittleLessCostsALittle) {
  const ChainOf g = uneven(50, 7, 0.5);
  const Planned p = plan(g, plan(g, 0, CKPT_STRATEGY_STORE_ALL).prediction.height - 301);
  EXPECT_LE(p.prediction.recompute_seconds, 0.5 + 1.01);
}

TEST(PlanAuto, HalfTheMemoryCostsLessThanHalfTheSlots) {
  // Half of each segment's bytes are in a slot that costs a tenth.
  Segment s;
  s.slots = {{"costly", 500, 9, {}}, {"cheap", 500, 1, {0}}};
  s.output_reads = {1};
  s.output_bytes = 0;
  const ChainOf g(40, s);
  const Planned p = plan(g, 21 * 1000);
  EXPECT_LE(p.prediction.recompute_seconds, 40);
  EXPECT_EQ(p.prediction.recompute_count, static_cast<uint64_t>(p.prediction.recompute_seconds));
}

TEST(PlanAuto, TheSameAnswerTwice) {
  const ChainOf g = uneven(60, 5, 0.25);
  const size_t top = plan(g, 0, CKPT_STRATEGY_STORE_ALL).prediction.height;
  for (size_t part : {10u, 30u, 50u, 90u}) EXPECT_EQ(plan(g, top * part / 100).program.actions, plan(g, top * part / 100).program.actions);
}

TEST(PlanAuto, AsGoodAsTheFixedStrategyThatFits) {
  Segment s;
  s.slots = {{"a", 1000, 1, {}}};
  s.output_bytes = 1;
  const ChainOf g(4, s);
  PlanRequest r;
  size_t minimum = 0;
  ASSERT_EQ(find_minimum_budget(g, derive_gradients(g, default_roots(g)), r, arena::Placer(), &minimum), CKPT_OK);
  EXPECT_EQ(plan(g, 1009).prediction.recompute_seconds, 3);  // block:3: the first three slots are made again
  EXPECT_EQ(plan(g, 1009).status, uint32_t{CKPT_PLAN_OPTIMAL});
  EXPECT_EQ(plan(g, 0).strategy, uint32_t{CKPT_STRATEGY_STORE_ALL});
  EXPECT_LE(minimum, 1009u);
}

// Small sizes and short times as they fall, which do not pack well when little memory is there.
ChainOf drawn(uint32_t n, uint32_t seed) {
  std::minstd_rand random(seed);
  const auto draw = [&](uint32_t low, uint32_t high) { return low + static_cast<uint32_t>(random() >> 8) % (high - low + 1); };
  ChainOf g(0, Segment{});
  g.root_grads_in_arena = true;
  for (uint32_t i = 0; i < n; ++i) {
    Segment s;
    s.slots = {{"a", draw(0, 3), 0, {}}};
    s.output_bytes = draw(1, 20);
    s.output_flags = CKPT_OUTPUT_BACKWARD_READS;
    s.output_seconds = draw(1, 5);
    s.backward_seconds = 2 * s.output_seconds;
    s.whole = true;
    g.append(s);
  }
  return g;
}

// What a plan, a refusal and find_minimum_budget name is one number: accepted, and one byte less is refused. A plan far above it need
// not name it. Also where packing the smallest program misses its load, and where that has more than some thousand actions.
TEST(PlanAuto, TheSmallestBudgetIsOneNumber) {
  Segment equal;
  equal.output_bytes = 100;
  std::vector<ChainOf> chains;
  for (uint32_t n : {1u, 2u, 7u, 60u}) chains.emplace_back(n, equal);
  chains.push_back(drawn(60, 1));
  chains.push_back(drawn(200, 6));
  uint32_t missed = 0;
  for (const ChainOf &g : chains) {
    SCOPED_TRACE(std::to_string(g.node_count()) + " segments");
    const GradientMap gradients = derive_gradients(g, default_roots(g));
    size_t minimum = 0;
    ASSERT_EQ(find_minimum_budget(g, gradients, PlanRequest{}, arena::Placer(), &minimum), CKPT_OK);
    PlanRequest less;
    less.budget = minimum - 1;
    Planned refused;
    EXPECT_EQ(make_plan(g, gradients, less, arena::Placer(), &refused), CKPT_ERROR_BUDGET);
    EXPECT_EQ(refused.minimum_budget, minimum);
    EXPECT_NE(std::string(last_error()).find(std::to_string(minimum)), std::string::npos);
    const Planned least = plan(g, minimum);
    EXPECT_EQ(least.minimum_budget, minimum);
    missed += least.prediction.height > least.prediction.peak;
    EXPECT_EQ(plan(g, minimum + minimum / 8).minimum_budget, minimum);
    for (size_t budget : {4 * minimum, size_t{0}}) {
      const size_t named = plan(g, budget).minimum_budget;
      EXPECT_TRUE(named == minimum || (named == 0 && g.node_count() > 40)) << named;
    }
  }
  EXPECT_GT(missed, 0u);
}

// Five levels down and up again: each decoder reads its encoder's output; sizes fall by four from level to level.
Graph unet(uint32_t levels) {
  Graph g;
  g.add_input(size_t{64} << 20, 0, true, CKPT_GRAD_NONE);
  std::vector<uint32_t> skips;
  const auto add = [&](std::vector<uint32_t> inputs, size_t slot, size_t output) {
    Segment s;
    s.slots = {{"conv", slot, 3, {}}, {"norm", slot, 1, {0}}, {"act", slot, 0.5, {1}}};
    s.output_reads = {2};
    s.output_bytes = output;
    s.output_seconds = 2;
    s.backward_seconds = 6;
    g.shapes.push_back(testing::shape_of(s, static_cast<uint32_t>(inputs.size()), "n" + std::to_string(g.node_count())));
    const uint32_t node = g.add_node(g.shapes.back().get(), inputs, nullptr, nullptr);
    g.nodes[node].backward_seconds = 6;
    return g.value_of(node, 3);
  };
  uint32_t x = 0;
  size_t bytes = size_t{64} << 20;
  for (uint32_t l = 0; l < levels; ++l, bytes /= 4) {
    skips.push_back(add({x}, bytes, bytes));
    x = add({skips.back()}, bytes, bytes / 4);
  }
  x = add({x}, bytes, bytes);
  for (uint32_t l = levels; l-- > 0;) {
    bytes *= 4;
    x = add({x}, bytes, bytes);
    x = add({x, skips[l]}, bytes, bytes);
  }
  return g;
}

TEST(PlanAuto, UNet) {
  const Graph g = unet(plan_test::kSlow > 1 ? 4 : 5);
  const size_t top = plan(g, 0, CKPT_STRATEGY_STORE_ALL).prediction.height;
  PlanRequest r;
  size_t minimum = 0;
  ASSERT_EQ(find_minimum_budget(g, derive_gradients(g, default_roots(g)), r, arena::Placer(), &minimum), CKPT_OK);
  EXPECT_LT(minimum, top / 2);
  double before = 1e30;
  for (uint32_t k = 0; k <= 10; ++k) {
    const Planned p = plan(g, minimum + (top - minimum) * k / 10);
    EXPECT_LE(p.prediction.seconds(), before + 1e-9);
    before = p.prediction.seconds();
    EXPECT_EQ(p.minimum_budget, minimum);
  }
  for (uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) {
    const Planned fixed = plan(g, 0, strategy);
    EXPECT_LE(plan(g, fixed.prediction.height).prediction.seconds(), fixed.prediction.seconds() + 1e-9) << strategy;
  }
}

// A slot that the output does not read is made with it, not put off until a backward needs it.
TEST(PlanAuto, AmpleMemoryPutsNothingOff) {
  Segment s;
  s.output_reads = {};
  const ChainOf g(4, s);
  for (size_t budget : {size_t{0}, plan(g, 0, CKPT_STRATEGY_STORE_ALL).prediction.height}) {
    EXPECT_EQ(plan(g, budget).prediction.recompute_seconds, 0);
    EXPECT_EQ(plan(g, budget).prediction.recompute_count, 0u);
    EXPECT_EQ(plan(g, budget).status, uint32_t{CKPT_PLAN_OPTIMAL});
  }
}

TEST(PlanAuto, SizesUpToTheLargest) {
  for (size_t bytes : {size_t{1} << 53, size_t{1} << 58, size_t{1} << 60}) {
    Segment s;
    s.slots = {{"a", bytes, 1, {}}};
    const ChainOf g(2, s);
    EXPECT_EQ(plan(g, 0).prediction.recompute_seconds, 0) << bytes;
    EXPECT_EQ(plan(g, bytes + 100).prediction.recompute_seconds, 1) << bytes;
  }
}

TEST(PlanAuto, LongChains) {
  const ChainOf g(2000, Segment{});
  const size_t top = plan(g, 0, CKPT_STRATEGY_STORE_ALL).prediction.height;
  EXPECT_GT(plan(g, top / 2).prediction.height, top / 3);
  EXPECT_LT(plan(g, top / 200).prediction.recompute_seconds, 5 * 2 * 2000.0);  // two levels: one group of about a hundred, halved
}

TEST(PlanAuto, ManyRecordingsInFlight) {
  const ChainOf g = uneven(10, 3, 0.5);
  PlanRequest r;
  r.in_flight = 8;
  Planned one, all;
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  r.strategy = CKPT_STRATEGY_STORE_ALL;
  ASSERT_EQ(make_plan(g, gradients, r, arena::Placer(), &all), CKPT_OK);
  EXPECT_GE(all.prediction.height, 7 * all.prediction.held + all.prediction.peak);
  r.strategy = CKPT_STRATEGY_AUTO;
  r.budget = all.prediction.height / 2;
  ASSERT_EQ(make_plan(g, gradients, r, arena::Placer(), &one), CKPT_OK) << last_error();
  EXPECT_LE(one.prediction.height, r.budget);
  EXPECT_LE(7 * one.prediction.held + one.prediction.peak, r.budget);
}

}  // namespace
}  // namespace ckpt::plan
