// The search for graphs: laws 3, 4 and 5 on random graphs; never slower than a fixed strategy; a U-Net's plans place every block.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plan/graph_search.h"
#include "plan/layout.h"
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

constexpr uint64_t kWork = 2'000'000;

Status search(const Graph &g, const GradientMap &gradients, uint32_t in_flight, size_t budget, Planned *out) { return search_graph(g, gradients, in_flight, budget, kWork, arena::Placer(), out); }

RC_GTEST_PROP(GraphSearch, KeepsToTheBudgetAndIsMonotonic, ()) {
  Kinds kinds;
  kinds.nodes_high = 6;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  const uint32_t in_flight = *rc::gen::inRange(0, 4) == 0 ? 3 : 1;
  Planned all, p, before;
  if (search(g, gradients, in_flight, 0, &all)) RC_FAIL(last_error());
  const size_t top = all.prediction.height;
  if (top == 0) return;
  const Status least = search(g, gradients, in_flight, 1, &p);
  RC_ASSERT(least == CKPT_OK || least == CKPT_ERROR_BUDGET);
  const size_t minimum = p.minimum_budget;
  RC_ASSERT(minimum <= top);
  if (minimum > 1) {
    RC_ASSERT(search(g, gradients, in_flight, minimum - 1, &p) == CKPT_ERROR_BUDGET);
    RC_ASSERT(p.minimum_budget == minimum);
  }
  std::vector<size_t> budgets = {std::max<size_t>(minimum, 1), top, std::max<size_t>(top - (top > minimum), 1)};
  for (int k = 0; k < 4; ++k) budgets.push_back(std::max<size_t>(*rc::gen::inRange(minimum, top + 1), 1));
  std::sort(budgets.begin(), budgets.end());
  for (const size_t budget : budgets) {
    if (search(g, gradients, in_flight, budget, &p)) RC_FAIL(last_error());
    Verified v;
    if (verify(g, gradients.roots, p.program.actions, &v)) RC_FAIL(last_error());
    RC_ASSERT(v.peak == p.prediction.peak);
    RC_ASSERT(p.prediction.height <= budget);
    RC_ASSERT(p.minimum_budget == minimum);
    if (!before.program.actions.empty()) {
      RC_ASSERT(p.prediction.seconds() <= before.prediction.seconds() * (1 + 1e-9));
      RC_ASSERT(p.prediction.height >= before.prediction.height);
    }
    before = p;
  }
  if (!testing::marked_again(g)) RC_ASSERT(p.prediction.recompute_count == 0u);
}

// What a dry recording names by declared costs is accepted once costs are measured, and by every rank.
RC_GTEST_PROP(GraphSearch, TheSmallestBudgetDoesNotDependOnCosts, ()) {
  Kinds kinds;
  kinds.skips = kinds.odd = kinds.groups = *rc::gen::inRange(0, 2) != 0;  // without: also chains
  kinds.nodes_high = 8;
  Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PlanRequest r;
  r.work_limit = kWork;
  r.in_flight = *rc::gen::inRange(0, 4) == 0 ? 2 : 1;
  r.budget = 1;
  Planned p;
  if (make_plan(g, gradients, r, arena::Placer(), &p) != CKPT_ERROR_BUDGET) return;
  const size_t minimum = p.minimum_budget;
  RC_ASSERT(minimum > 1u);
  for (double &seconds : g.item_seconds) seconds = *rc::gen::inRange(0, 1000) * 1e-6;
  for (Node &n : g.nodes) n.backward_seconds = *rc::gen::inRange(0, 1000) * 1e-6;
  r.budget = minimum;
  if (make_plan(g, gradients, r, arena::Placer(), &p)) RC_FAIL(last_error());
  RC_ASSERT(p.minimum_budget == minimum);
  r.budget = minimum - 1;
  RC_ASSERT(make_plan(g, gradients, r, arena::Placer(), &p) == CKPT_ERROR_BUDGET);
  RC_ASSERT(p.minimum_budget == minimum);
}

// Its program of the least load takes more once it has been through tighten(), and than what store_all takes.
TEST(GraphSearch, TheSmallestBudgetIsNotAboveAFixedStrategys) {
  Graph g;
  g.rule.alignment_bytes = 1;
  g.add_input(16, 16, true, 1);
  const auto node = [&](std::vector<Item> slots, size_t bytes, uint32_t group, uint32_t flags, std::vector<uint32_t> inputs, std::vector<uint32_t> input_flags, size_t scratch) {
    std::vector<Item> outputs(1);
    outputs[0].name = "o0";
    outputs[0].bytes = outputs[0].grad_bytes = bytes;
    outputs[0].cost_seconds = 1;
    outputs[0].group = group;
    outputs[0].flags = flags;
    Result<Shape> made = Shape::create("n" + std::to_string(g.node_count()), slots, outputs, input_flags, scratch, scratch, true, false);
    ASSERT_TRUE(made.ok()) << last_error();
    g.shapes.push_back(std::make_shared<const Shape>(std::move(*made)));
    g.add_node(g.shapes.back().get(), inputs, nullptr, nullptr);
  };
  std::vector<Item> slots(1);
  slots[0].name = "s0";
  slots[0].bytes = 40;
  slots[0].cost_seconds = 1;
  slots[0].group = 1;
  slots[0].flags = 32;
  node(slots, 40, 1, 1, {0}, {0}, 0);
  node({}, 1, 1, 1, {1}, {2}, 100);
  node({}, 256, 0, 4, {2}, {4}, 0);
  node({}, 64, 0, 0, {}, {}, 0);
  g.values[3].read_at_end = true;
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Planned p;
  ASSERT_EQ(search(g, gradients, 1, 1, &p), CKPT_ERROR_BUDGET);
  const size_t minimum = p.minimum_budget;
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) {
    PlanRequest r;
    r.strategy = strategy;
    ASSERT_EQ(make_plan(g, gradients, r, arena::Placer(), &p), CKPT_OK) << last_error();
    EXPECT_GE(p.prediction.height, minimum) << strategy;
  }
  EXPECT_EQ(search(g, gradients, 1, minimum, &p), CKPT_OK) << last_error();
}

RC_GTEST_PROP(GraphSearch, IsNoSlowerThanAFixedStrategy, ()) {
  Kinds kinds;
  kinds.nodes_high = 8;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PlanRequest r;
  r.strategy = *rc::gen::inRange<uint32_t>(CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL + 1);
  if (r.strategy == CKPT_STRATEGY_UNIFORM || r.strategy == CKPT_STRATEGY_BLOCK) r.k = *rc::gen::inRange(1u, 6u);
  Planned fixed, p;
  if (make_plan(g, gradients, r, arena::Placer(), &fixed)) RC_FAIL(last_error());
  if (fixed.prediction.height == 0) return;
  if (search(g, gradients, 1, fixed.prediction.height, &p)) RC_FAIL(last_error());
  RC_ASSERT(p.prediction.seconds() <= fixed.prediction.seconds() * (1 + 1e-9));
}

// Twice the same question, the same answer; more work, no worse one.
RC_GTEST_PROP(GraphSearch, IsDeterministicAndGainsFromWork, ()) {
  Kinds kinds;
  kinds.nodes_low = 3;
  kinds.nodes_high = 8;
  const Graph g = GraphMaker(draw(), kinds).make();
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Planned all, a, b, c;
  if (search(g, gradients, 1, 0, &all)) RC_FAIL(last_error());
  const size_t budget = all.prediction.height / 4 * 3;
  if (budget == 0) return;
  const Status status = search_graph(g, gradients, 1, budget, 100'000, arena::Placer(), &a);
  RC_ASSERT(search_graph(g, gradients, 1, budget, 100'000, arena::Placer(), &b) == status);
  RC_ASSERT(a.program.actions == b.program.actions);
  RC_ASSERT(a.minimum_budget == b.minimum_budget);
  const Status more = search(g, gradients, 1, budget, &c);
  if (status == CKPT_OK) RC_ASSERT(more == CKPT_OK);
}

// Scenario 12: encoder, bottom, decoder; each skip crosses all that lies below it; 64 MiB at the top, 1 KiB at the bottom.
Graph unet(uint32_t depth) {
  Graph g;
  g.add_input(size_t{3} << 20, 0, true, CKPT_GRAD_NONE);
  std::vector<uint32_t> skips;
  const auto node = [&](const std::string &name, std::vector<uint32_t> inputs, size_t bytes) {
    std::vector<Item> slots(2), outputs(1);
    slots[0].name = "convolved";
    slots[0].bytes = bytes;
    slots[0].cost_seconds = 7;
    slots[1].name = "normed";
    slots[1].bytes = bytes / 2 + 100;
    slots[1].cost_seconds = 1;
    slots[1].reads.set(0);
    outputs[0].name = "out";
    outputs[0].bytes = bytes;
    outputs[0].cost_seconds = 2;
    outputs[0].reads.set(1);
    Result<Shape> made = Shape::create(name, slots, outputs, std::vector<uint32_t>(inputs.size(), 0), bytes / 8, bytes / 4, true, false);
    EXPECT_TRUE(made.ok()) << last_error();
    g.shapes.push_back(std::make_shared<const Shape>(std::move(*made)));
    const uint32_t n = g.add_node(g.shapes.back().get(), inputs, nullptr, nullptr);
    g.nodes[n].backward_seconds = 20;
    return g.nodes[n].first_value;
  };
  uint32_t at = 0;
  const auto bytes_at = [&](uint32_t level) { return std::max<size_t>((size_t{64} << 20) >> (16 * level / depth), 1024); };
  for (uint32_t d = 0; d < depth; ++d) skips.push_back(at = node("down" + std::to_string(d), {at}, bytes_at(d)));
  at = node("bottom", {at}, bytes_at(depth));
  for (uint32_t d = depth; d-- > 0;) at = node("up" + std::to_string(d), {at, skips[d]}, bytes_at(d));
  return g;
}

TEST(GraphSearch, UNetsPlansPlaceEveryBlock) {
  const Graph g = unet(6);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Planned all, p;
  ASSERT_EQ(search(g, gradients, 1, 0, &all), CKPT_OK);
  ASSERT_EQ(search(g, gradients, 1, 1, &p), CKPT_ERROR_BUDGET);
  const size_t minimum = p.minimum_budget;
  EXPECT_LT(minimum, all.prediction.height * 7 / 10);
  for (size_t k = 0; k <= 8; ++k) {
    const size_t budget = minimum + (all.prediction.height - minimum) * k / 8;
    ASSERT_EQ(search(g, gradients, 1, budget, &p), CKPT_OK) << last_error();
    std::vector<Block> blocks;
    ASSERT_EQ(list_blocks(g, gradients, p.program, &blocks), CKPT_OK);
    ASSERT_EQ(blocks.size(), p.offsets.size());
    for (size_t a = 0; a < blocks.size(); ++a) {
      EXPECT_LE(p.offsets[a] + blocks[a].bytes, budget);
      for (size_t b = 0; b < a; ++b) {
        const bool meet = blocks[a].first_action < blocks[b].end_action && blocks[b].first_action < blocks[a].end_action;
        const bool apart = p.offsets[a] + blocks[a].bytes <= p.offsets[b] || p.offsets[b] + blocks[b].bytes <= p.offsets[a];
        EXPECT_TRUE(!meet || apart || blocks[a].bytes == 0 || blocks[b].bytes == 0) << "blocks " << a << " and " << b << " at " << budget;
      }
    }
  }
}

// From the fastest to the smallest.
TEST(GraphSearch, CurveEndsAtTheSmallestBudget) {
  const Graph g = unet(3);
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Planned p;
  ASSERT_EQ(search(g, gradients, 1, 1, &p), CKPT_ERROR_BUDGET);
  ASSERT_EQ(search(g, gradients, 1, p.minimum_budget, &p), CKPT_OK);
  std::vector<CurvePoint> curve;
  ASSERT_EQ(search_graph_curve(g, gradients, 1, kWork, 16, &curve), CKPT_OK);
  ASSERT_GE(curve.size(), 3u);
  for (size_t k = 1; k < curve.size(); ++k) EXPECT_GE(curve[k].prediction.seconds(), curve[k - 1].prediction.seconds());
  EXPECT_EQ(curve.back().prediction.height, p.minimum_budget);
}

}  // namespace
}  // namespace ckpt::plan
