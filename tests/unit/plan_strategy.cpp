// The fixed strategies: names, patterns, and what each keeps, by hand.
#include "plan/strategy.h"

#include <gtest/gtest.h>

#include "plan/pattern.h"
#include "plan/simulate.h"

namespace {

using namespace ckpt;
using namespace ckpt::plan;

Item slot(const char *name, size_t bytes, double seconds, std::vector<uint32_t> reads = {}, uint32_t flags = 0) {
  Item it;
  it.name = name;
  it.bytes = bytes;
  it.cost_seconds = seconds;
  it.flags = flags;
  for (uint32_t r : reads) it.reads.set(r);
  return it;
}

// One kind of segment for every node: slots a (10 bytes, 1 s) and b (20 bytes, 2 s, from a), an output of 5 bytes in 4 s.
struct Chain {
  Graph graph;
  GradientMap gradients;

  explicit Chain(uint32_t n, uint32_t flags_a = 0, uint32_t flags_b = 0, bool replayable = true) {
    graph.rule.alignment_bytes = 1;
    graph.add_input(5, 0, true, CKPT_GRAD_NONE);
    for (uint32_t i = 0; i < n; ++i) {
      auto shape = Shape::create("block" + std::to_string(i), {slot("a", 10, 1, {}, flags_a), slot("b", 20, 2, {0}, flags_b)}, {slot("out", 5, 4, {1})}, {0}, 0, 0, replayable, false);
      EXPECT_TRUE(shape.ok()) << last_error();
      graph.shapes.push_back(std::make_shared<const Shape>(std::move(*shape)));
      const uint32_t input[] = {i};
      graph.add_node(graph.shapes.back().get(), input, nullptr, nullptr);
      graph.nodes[i].backward_seconds = 10;
    }
    gradients = derive_gradients(graph, default_roots(graph));
  }
};

PlanRequest request(uint32_t strategy, uint32_t k = 0) {
  PlanRequest r;
  r.strategy = strategy;
  r.k = k;
  return r;
}

PlanRequest selective(std::vector<std::string> keep, std::vector<std::string> recompute) {
  PlanRequest r = request(CKPT_STRATEGY_SELECTIVE);
  r.keep_patterns = std::move(keep);
  r.recompute_patterns = std::move(recompute);
  return r;
}

Simulation simulated(const Chain &c, const PlanRequest &r) {
  Simulation s;
  const auto policy = fixed_policy(c.graph, r);
  EXPECT_TRUE(policy.ok()) << last_error();
  if (!policy.ok()) return s;
  const auto program = write_step(c.graph, c.gradients, *policy);
  EXPECT_TRUE(program.ok()) << last_error();
  if (!program.ok()) return s;
  EXPECT_EQ(simulate_step(c.graph, c.gradients, *program, arena::Placer(), &s), CKPT_OK) << last_error();
  return s;
}

void refused(const Result<Policy> &got, Status code, const char *part) {
  EXPECT_EQ(got.status(), code);
  EXPECT_NE(std::string(last_error()).find(part), std::string::npos) << last_error();
}

TEST(Pattern, Globs) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("a*c", "ac"));
  EXPECT_TRUE(matches("a*c", "abcbc"));
  EXPECT_FALSE(matches("a*c", "abcb"));
  EXPECT_TRUE(matches("?", "x"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("?", "xy"));
  EXPECT_TRUE(matches("*.mlp?.*", "block.mlp2.act"));
  EXPECT_FALSE(matches("*.mlp?.*", "block.mlp.act"));
  EXPECT_TRUE(matches("**a**", "a"));
  EXPECT_FALSE(matches("abc", "abcd"));
  EXPECT_FALSE(matches("abcd", "abc"));
  EXPECT_TRUE(matches("[a]", "[a]")) << "brackets stand for themselves";
  // Backtracking over many stars is not exponential.
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(Strategy, NamesAndTheirNumbers) {
  for (uint32_t s = CKPT_STRATEGY_AUTO; s <= CKPT_STRATEGY_SELECTIVE; ++s) {
    const bool takes_k = s == CKPT_STRATEGY_UNIFORM || s == CKPT_STRATEGY_BLOCK;
    uint32_t strategy = 99, k = 99;
    EXPECT_EQ(parse_strategy("f", (std::string(strategy_name(s)) + (takes_k ? ":17" : "")).c_str(), &strategy, &k), CKPT_OK) << last_error();
    EXPECT_EQ(strategy, s);
    EXPECT_EQ(k, takes_k ? 17u : 0u);
  }
  EXPECT_STREQ(strategy_name(CKPT_STRATEGY_SELECTIVE + 1), "unknown");
  uint32_t strategy = 7, k = 5;
  for (const char *bad : {"uniform", "uniform:", "uniform:0", "uniform:-1", "uniform:4294967296", "uniform:3x", "uniform: 3", "block", "block:", "sqrt:3", "auto:", "full:1"})
    EXPECT_EQ(parse_strategy("f", bad, &strategy, &k), CKPT_ERROR_INVALID_ARGUMENT) << bad;
  for (const char *bad : {"", "optimal", "Sqrt", "sqrt ", ":3", "unknown"}) EXPECT_EQ(parse_strategy("f", bad, &strategy, &k), CKPT_ERROR_NOT_FOUND) << bad;
  EXPECT_EQ(strategy, 7u) << "untouched on failure";
  EXPECT_EQ(k, 5u);
  EXPECT_NE(std::string(last_error()).find("uniform:"), std::string::npos) << "the text lists what is known: " << last_error();
}

TEST(Strategy, RequestsThatMakeNoSense) {
  const auto bad = [](const char *function, const PlanRequest &r, const char *part) {
    EXPECT_EQ(check_request(function, r), CKPT_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(last_error()).find(part), std::string::npos) << last_error();
  };
  bad("ckpt_plan_create", request(8), "ckpt_plan_create: strategy is 8, expected 0");
  bad("ckpt_plan_create", request(CKPT_STRATEGY_UNIFORM), "k is 0, expected at least 1");
  bad("ckpt_tape_create", request(CKPT_STRATEGY_BLOCK), "strategy_k is 0, expected at least 1");
  bad("ckpt_tape_create", request(CKPT_STRATEGY_SQRT, 3), "strategy_k is 3, expected 0 with strategy sqrt");
  PlanRequest flight = request(CKPT_STRATEGY_AUTO);
  flight.in_flight = 0;
  bad("f", flight, "in_flight_count is 0, expected 1");
  flight.in_flight = 1u << 20;
  bad("f", flight, "in_flight_count is 1048576");
  PlanRequest patterns = request(CKPT_STRATEGY_STORE_ALL);
  patterns.keep_patterns = {"a"};
  bad("f", patterns, "expected none with strategy store_all");
  bad("f", selective({}, {}), "without a pattern");
  bad("f", selective({"a", ""}, {}), "empty keep pattern");
  bad("f", selective({}, {""}), "empty recompute pattern");
  EXPECT_EQ(check_request("f", selective({"a"}, {})), CKPT_OK);
  EXPECT_EQ(check_request("f", request(CKPT_STRATEGY_UNIFORM, UINT32_MAX)), CKPT_OK);
}

TEST(Strategy, StoreAllRunsNothingAgain) {
  const Simulation s = simulated(Chain(4), request(CKPT_STRATEGY_STORE_ALL));
  EXPECT_EQ(s.recompute_count, 0u);
  EXPECT_EQ(s.recompute_seconds, 0);
  EXPECT_EQ(s.forward_seconds, 4 * 7);
  EXPECT_EQ(s.backward_seconds, 4 * 10);
  // Four times both slots; boundaries 1 to 3 are read by backwards, boundary 4 by nobody.
  EXPECT_EQ(s.held, 4u * 30 + 3 * 5);
}

TEST(Strategy, StoreAllRecomputesWhatIsMarked) {
  const Simulation s = simulated(Chain(4, 0, CKPT_SLOT_RECOMPUTE), request(CKPT_STRATEGY_STORE_ALL));
  EXPECT_EQ(s.recompute_count, 4u);
  EXPECT_EQ(s.recompute_seconds, 4 * 2) << "b from a, which is there";
}

// What a marked slot is made from is kept too, even if no backward reads it.
TEST(Strategy, StoreAllKeepsWhatMarkedSlotsAreMadeFrom) {
  const Simulation s = simulated(Chain(4, CKPT_SLOT_TRANSIENT, CKPT_SLOT_RECOMPUTE), request(CKPT_STRATEGY_STORE_ALL));
  EXPECT_EQ(s.recompute_seconds, 4 * 2);
}

TEST(Strategy, EverySegmentKeepsBoundaries) {
  const Simulation s = simulated(Chain(4), request(CKPT_STRATEGY_EVERY_SEGMENT));
  EXPECT_EQ(s.held, 3u * 5);
  EXPECT_EQ(s.recompute_seconds, 4 * 3) << "slots, no outputs";
  EXPECT_EQ(s.recompute_count, 4u);
}

// Ten nodes in groups of ceil(sqrt(10)) = 4: boundaries 4 and 8 are kept, each group runs again but for its last output.
TEST(Strategy, SqrtKeepsGroupInputs) {
  const Simulation s = simulated(Chain(10), request(CKPT_STRATEGY_SQRT));
  EXPECT_EQ(s.held, 2u * 5);
  EXPECT_EQ(s.recompute_count, 10u);
  EXPECT_EQ(s.recompute_seconds, 10 * 3 + (3 + 3 + 1) * 4);
  EXPECT_EQ(simulated(Chain(10), request(CKPT_STRATEGY_UNIFORM, 4)).recompute_seconds, s.recompute_seconds);
  EXPECT_EQ(sqrt_group(1), 1u);
  EXPECT_EQ(sqrt_group(2), 2u);
  EXPECT_EQ(sqrt_group(9), 3u);
  EXPECT_EQ(sqrt_group(10), 4u);
  EXPECT_EQ(sqrt_group(0xFFFE0001), 65535u);
  EXPECT_EQ(sqrt_group(UINT32_MAX), 65536u);
}

TEST(Strategy, UniformOfOneIsEverySegment) {
  const Simulation one = simulated(Chain(6), request(CKPT_STRATEGY_UNIFORM, 1)), every = simulated(Chain(6), request(CKPT_STRATEGY_EVERY_SEGMENT));
  EXPECT_EQ(one.peak, every.peak);
  EXPECT_EQ(one.recompute_seconds, every.recompute_seconds);
}

TEST(Strategy, UniformLongerThanTheChainRunsAllOfItAgain) {
  const Simulation s = simulated(Chain(6), request(CKPT_STRATEGY_UNIFORM, UINT32_MAX));
  EXPECT_EQ(s.held, 0u);
  EXPECT_EQ(s.recompute_count, 6u);
  EXPECT_EQ(s.recompute_seconds, 6 * 3 + 5 * 4);
}

TEST(Strategy, BlockRecomputesTheFirstOnly) {
  const Simulation s = simulated(Chain(6), request(CKPT_STRATEGY_BLOCK, 2));
  EXPECT_EQ(s.held, 5u * 5 + 4 * 30);
  EXPECT_EQ(s.recompute_seconds, 2 * 3);
  EXPECT_EQ(simulated(Chain(6), request(CKPT_STRATEGY_BLOCK, 99)).recompute_seconds, 6 * 3);
}

// Backward i runs 0 .. i - 1 again for its input, and itself for its slots.
TEST(Strategy, FullKeepsTheInputAlone) {
  const Simulation s = simulated(Chain(6), request(CKPT_STRATEGY_FULL));
  EXPECT_EQ(s.held, 0u);
  EXPECT_EQ(s.recompute_count, 15u + 6);
  EXPECT_EQ(s.recompute_seconds, 15 * 7 + 6 * 3);
}

TEST(Strategy, SelectiveKeepsOrRecomputesByName) {
  EXPECT_EQ(simulated(Chain(4), selective({"a"}, {})).recompute_seconds, 4 * 2) << "only keep patterns: the rest is recomputed";
  EXPECT_EQ(simulated(Chain(4), selective({}, {"b"})).recompute_seconds, 4 * 2) << "recompute patterns: the rest is kept";
  EXPECT_EQ(simulated(Chain(4), selective({"a"}, {"b"})).recompute_seconds, 4 * 2);
  EXPECT_EQ(simulated(Chain(4), selective({"b"}, {})).recompute_seconds, 4 * 1);
  EXPECT_EQ(simulated(Chain(4), selective({"block2/*"}, {})).recompute_seconds, 3 * 3);
  EXPECT_EQ(simulated(Chain(4), selective({}, {"block?/b"})).recompute_seconds, 4 * 2);
  EXPECT_EQ(simulated(Chain(4), selective({"block1/a"}, {"block3/a"})).recompute_seconds, 1) << "both lists: unmatched slots are kept";
  EXPECT_EQ(simulated(Chain(4), selective({"*"}, {})).recompute_seconds, 0);
  EXPECT_EQ(simulated(Chain(4), selective({}, {"*"})).recompute_seconds, 4 * 3);
}

TEST(Strategy, SelectiveRefusesWhatMakesNoSense) {
  const Chain c(3);
  refused(fixed_policy(c.graph, selective({"c"}, {})), CKPT_ERROR_NOT_FOUND, "keep pattern 'c' matches no slot");
  refused(fixed_policy(c.graph, selective({"a"}, {"block3/*"})), CKPT_ERROR_NOT_FOUND, "recompute pattern 'block3/*' matches no slot");
  refused(fixed_policy(c.graph, selective({"out"}, {})), CKPT_ERROR_NOT_FOUND, "'out'");
  refused(fixed_policy(c.graph, selective({"?"}, {"block1/b"})), CKPT_ERROR_CONFLICT, "slot 'b' of segment 'block1'");
  refused(fixed_policy(Chain(3, 0, CKPT_SLOT_RECOMPUTE).graph, selective({"b"}, {})), CKPT_ERROR_CONFLICT, "marked RECOMPUTE");
  refused(fixed_policy(Chain(3, CKPT_SLOT_KEEP).graph, selective({}, {"a"})), CKPT_ERROR_CONFLICT, "marked KEEP");
  refused(fixed_policy(Chain(3, 0, 0, false).graph, selective({}, {"a"})), CKPT_ERROR_CONFLICT, "no forward to run again");
}

// Skip connections: what is read beyond its group is kept, what is read inside it only is not.
TEST(Strategy, GroupsKeepEveryValueThatLeavesThem) {
  Graph g;
  g.rule.alignment_bytes = 1;
  const uint32_t x = g.add_input(1, 0, false, CKPT_GRAD_NONE);
  auto one = Shape::create("one", {}, {slot("out", 1, 1)}, {0}, 0, 0, true, false);
  auto two = Shape::create("two", {}, {slot("out", 1, 1)}, {0, 0}, 0, 0, true, false);
  const uint32_t in0[] = {x};
  g.add_node(&*one, in0, nullptr, nullptr);      // 0: value 1
  const uint32_t in1[] = {1};
  g.add_node(&*one, in1, nullptr, nullptr);      // 1: value 2
  const uint32_t in2[] = {2};
  g.add_node(&*one, in2, nullptr, nullptr);      // 2: value 3
  const uint32_t in3[] = {3, 1};
  g.add_node(&*two, in3, nullptr, nullptr);      // 3: value 4, skip from node 0
  const std::vector<uint8_t> keep = values_across_groups(g, 2);
  EXPECT_EQ(keep, (std::vector<uint8_t>{0, 1, 1, 0, 0}));
  EXPECT_EQ(values_across_groups(g, 4), (std::vector<uint8_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(values_across_groups(g, 1), (std::vector<uint8_t>{0, 1, 1, 1, 0}));
}

}  // namespace
