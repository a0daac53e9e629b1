// The verifier rule by rule: the smallest program that breaks each, and what the text says of it.
#include "plan/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace ckpt::plan {
namespace {

Item item(const char *name, size_t bytes, double seconds, std::vector<uint32_t> reads = {}, uint32_t flags = 0, uint32_t group = 0) {
  Item it;
  it.name = name;
  it.bytes = bytes;
  it.cost_seconds = seconds;
  for (uint32_t r : reads) it.reads.set(r);
  it.flags = flags;
  it.group = group;
  return it;
}
Bits set(std::vector<uint32_t> numbers) {
  Bits b;
  for (uint32_t k : numbers) b.set(k);
  return b;
}
Action forward(uint32_t node, std::vector<uint32_t> want, std::vector<uint32_t> in_place = {}) { return {ActionKind::forward, node, set(want), set(in_place)}; }
Action backward(uint32_t node, std::vector<uint32_t> stay = {}) { return {ActionKind::backward, node, set(stay), {}}; }
Action free_value(uint32_t v) { return {ActionKind::free, v, {}, {}}; }
Action drop(uint32_t node, std::vector<uint32_t> slots) { return {ActionKind::drop, node, set(slots), {}}; }

struct Build {
  Graph graph;
  std::vector<Root> roots;

  explicit Build(size_t input_bytes = 8, bool caller = false, uint8_t grad = CKPT_GRAD_NONE) {
    graph.rule.alignment_bytes = 1;
    graph.add_input(input_bytes, 0, caller, grad);
  }
  uint32_t node(std::vector<Item> slots, std::vector<Item> outputs, std::vector<uint32_t> inputs, std::vector<uint32_t> flags = {}, size_t forward_scratch = 0, size_t backward_scratch = 0,
                bool replayable = true, bool whole = false) {
    flags.resize(inputs.size(), 0);
    Result<Shape> s = Shape::create("seg" + std::to_string(graph.node_count()), std::move(slots), std::move(outputs), flags, forward_scratch, backward_scratch, replayable, whole);
    EXPECT_TRUE(s.ok()) << last_error();
    graph.shapes.push_back(std::make_shared<const Shape>(std::move(*s)));
    const uint32_t n = graph.add_node(graph.shapes.back().get(), inputs, nullptr, nullptr);
    graph.nodes[n].backward_seconds = 1;
    return n;
  }
  // Fails, at this action, for this reason.
  void refuses(const std::vector<Action> &actions, const std::string &expected) const {
    Verified v{1, 2, 3, 4};
    EXPECT_EQ(verify(graph, roots.empty() ? default_roots(graph) : roots, actions, &v), CKPT_ERROR_INVALID_PLAN) << expected;
    EXPECT_EQ(std::string(last_error()), expected);
    EXPECT_EQ(v.peak, 1u);  // untouched
  }
  Verified accepts(const std::vector<Action> &actions) const {
    Verified v;
    EXPECT_EQ(verify(graph, roots.empty() ? default_roots(graph) : roots, actions, &v), CKPT_OK) << last_error();
    return v;
  }
};

// Input 8; two segments: slot 0 (16 bytes, 2 s), output 1 (4 bytes, 1 s) from it.
Build two() {
  Build b;
  b.node({item("act", 16, 2)}, {item("y", 4, 1, {0})}, {0});
  b.node({item("act", 16, 2)}, {item("y", 4, 1, {0})}, {1});
  return b;
}

TEST(Verify, CountsPeakHeldAndSeconds) {
  const Build b = two();
  // Input 8, act 16, y 4, act 16, y 4 are live; backward 1 adds the gradient of boundary 1 (4).
  Verified v = b.accepts({forward(0, {0, 1}), forward(1, {0, 1}), backward(1), backward(0)});
  EXPECT_EQ(v.peak, 8u + 16 + 4 + 16 + 4 + 4);
  EXPECT_EQ(v.held, 48u);
  EXPECT_EQ(v.seconds, 3 + 3 + 1 + 1);
  EXPECT_EQ(v.recompute_seconds, 0);
  // Without the slots of segment 0, which are made again while the gradient of boundary 1 is there; what is given back right
  // after the forward pass is not held.
  v = b.accepts({forward(0, {1}), forward(1, {0, 1}), free_value(2), backward(1), forward(0, {0}), backward(0)});
  EXPECT_EQ(v.peak, 8u + 4 + 16 + 4);
  EXPECT_EQ(v.held, 8u + 4 + 16);
  EXPECT_EQ(v.seconds, 3 + 3 + 2 + 1 + 1);
  EXPECT_EQ(v.recompute_seconds, 2);
}

TEST(Verify, AcceptsNoOut) {
  const Build b = two();
  EXPECT_EQ(verify(b.graph, default_roots(b.graph), std::vector<Action>{forward(0, {0, 1}), forward(1, {0, 1}), backward(1), backward(0)}, nullptr), CKPT_OK);
}

TEST(Verify, EmptyGraph) {
  Build b(100);
  const Verified v = b.accepts({});
  EXPECT_EQ(v.peak, 100u);
  EXPECT_EQ(v.held, 100u);
  EXPECT_EQ(v.seconds, 0);
}

TEST(Verify, Order) {
  const Build b = two();
  b.refuses({forward(1, {0, 1})}, "action 0: forward 1 before the first run of segment 0");
  b.refuses({forward(2, {0, 1})}, "action 0: forward 2, expected a segment below 2");
  b.refuses({backward(2)}, "action 0: backward 2, expected a segment below 2");
  b.refuses({forward(0, {0, 1}), backward(0)}, "action 1: backward 0 before the first run of segment 1");
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}), backward(0)}, "action 2: backward 0 out of order, expected backward 1");
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}), backward(1), backward(1)}, "action 3: backward 1 out of order, expected backward 0");
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}), backward(1), backward(0), backward(0)}, "action 4: backward 0 after the last backward");
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}), backward(1), forward(1, {0})}, "action 3: forward 1 after its backward");
  Action unknown = backward(0);
  unknown.kind = static_cast<ActionKind>(4);
  b.refuses({unknown}, "action 0: unknown kind 4");
}

TEST(Verify, WholeStep) {
  const Build b = two();
  b.refuses({}, "the program ends after 0 actions before the first run of segment 0");
  b.refuses({forward(0, {0, 1})}, "the program ends after 1 actions before the first run of segment 1");
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}), backward(1)}, "the program ends after 3 actions without backward 0");
}

TEST(Verify, ForwardWants) {
  const Build b = two();
  b.refuses({forward(0, {0})}, "action 0: the first run of segment 0 without its output 'y', expected all outputs");
  b.refuses({forward(0, {0, 1, 2})}, "action 0: forward 0 wants item 2, segment 'seg0' has 2");
  b.refuses({forward(0, {0, 1, 255})}, "action 0: forward 0 wants item 255, segment 'seg0' has 2");
}

TEST(Verify, InputsLive) {
  const Build b = two();
  b.refuses({forward(0, {0, 1}), free_value(1), forward(1, {0, 1})}, "action 2: forward 1 reads boundary 1, which is not live");
  b.refuses({free_value(0), forward(0, {0, 1})}, "action 1: forward 0 reads boundary 0, which is not live");
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}), free_value(1), backward(1)}, "action 3: backward 1 reads boundary 1, which is not live");
  Build ignores;
  ignores.node({}, {item("y", 4, 1)}, {0});
  ignores.node({}, {item("y", 4, 1)}, {1}, {CKPT_INPUT_BACKWARD_IGNORES});
  ignores.accepts({forward(0, {0}), forward(1, {0}), free_value(1), backward(1), backward(0)});
}

TEST(Verify, BackwardReads) {
  const Build b = two();
  b.refuses({forward(0, {0, 1}), forward(1, {1}), backward(1)}, "action 2: backward 1 reads 'act' of segment 'seg1', which is not live");
  Build output;
  output.node({item("t", 16, 1, {}, CKPT_SLOT_TRANSIENT)}, {item("y", 4, 1, {0}, CKPT_OUTPUT_BACKWARD_READS)}, {0});
  output.refuses({forward(0, {1}), free_value(1), backward(0)}, "action 2: backward 0 reads 'y' of segment 'seg0', which is not live");
  const Verified v = output.accepts({forward(0, {1}), free_value(1), forward(0, {1}), backward(0)});
  EXPECT_EQ(v.peak, 8u + 16 + 4);
  EXPECT_EQ(v.recompute_seconds, 2);
}

TEST(Verify, FreeAndDrop) {
  Build b(8, true);
  b.node({item("act", 16, 2)}, {item("y", 4, 1, {0})}, {0});
  b.refuses({free_value(2)}, "action 0: free 2, expected a boundary below 2");
  b.refuses({free_value(0)}, "action 0: free of boundary 0, which is the caller's memory");
  b.refuses({free_value(1)}, "action 0: free of boundary 1, which is not live");
  b.refuses({forward(0, {0, 1}), free_value(1), free_value(1)}, "action 2: free of boundary 1, which is not live");
  b.refuses({drop(1, {0})}, "action 0: drop 1, expected a segment below 1");
  b.refuses({forward(0, {0, 1}), drop(0, {1})}, "action 1: drop 0 of item 1, expected slots of segment 'seg0'");
  b.refuses({forward(0, {1}), drop(0, {0})}, "action 1: drop of slot 'act' of segment 'seg0', which is not live");
  b.accepts({forward(0, {0, 1}), drop(0, {}), backward(0)});
}

TEST(Verify, Keep) {
  Build b;
  b.node({item("choice", 16, 2, {}, CKPT_SLOT_KEEP)}, {item("y", 4, 1, {0}, CKPT_OUTPUT_KEEP)}, {0});
  b.refuses({forward(0, {1})}, "action 0: the first run of segment 0 does not keep 'choice', which is marked KEEP or cannot be made again");
  b.refuses({forward(0, {0, 1}), drop(0, {0})}, "action 1: drop of slot 'choice' of segment 'seg0', which is marked KEEP");
  b.refuses({forward(0, {0, 1}), free_value(1)}, "action 1: free of boundary 1, which is marked KEEP");
  b.accepts({forward(0, {0, 1}), forward(0, {0, 1}), backward(0)});  // asks for what is there
}

TEST(Verify, NotReplayable) {
  Build b;
  b.node({item("t", 16, 2, {}, CKPT_SLOT_TRANSIENT), item("act", 2, 1, {0})}, {item("y", 4, 1, {1})}, {0}, {}, 0, 0, false);
  b.refuses({forward(0, {2})}, "action 0: the first run of segment 0 does not keep 'act', which is marked KEEP or cannot be made again");
  b.refuses({forward(0, {1, 2}), forward(0, {0})}, "action 1: forward 0 makes 't', but segment 'seg0' has no forward to run again");
  b.refuses({forward(0, {1, 2}), free_value(1)}, "action 1: free of boundary 1, which is marked KEEP");
  b.refuses({forward(0, {1, 2}), drop(0, {1})}, "action 1: drop of slot 'act' of segment 'seg0', which is marked KEEP");
  b.accepts({forward(0, {0, 1, 2}), drop(0, {0}), forward(0, {1}), backward(0)});
}

TEST(Verify, RecomputeSlots) {
  Build b;
  b.node({item("mask", 16, 2, {}, CKPT_SLOT_RECOMPUTE)}, {item("y", 4, 1)}, {0});
  b.node({}, {item("y", 4, 1)}, {1});
  b.refuses({forward(0, {0, 1}), forward(1, {0})}, "action 1: segment 1 acts while slot 'mask' of segment 0 is live, which is marked RECOMPUTE");
  b.refuses({forward(0, {1}), forward(1, {0}), forward(0, {0}), backward(1)}, "action 3: segment 1 acts while slot 'mask' of segment 0 is live, which is marked RECOMPUTE");
  b.accepts({forward(0, {0, 1}), drop(0, {0}), forward(1, {0}), free_value(2), backward(1), forward(0, {0}), backward(0)});
  Build kept;  // one that the backward of its own segment leaves behind
  kept.node({}, {item("y", 4, 1)}, {0});
  kept.node({item("mask", 16, 2, {}, CKPT_SLOT_RECOMPUTE)}, {item("y", 4, 1)}, {1});
  kept.refuses({forward(0, {0}), forward(1, {0, 1}), backward(1, {0}), backward(0)}, "action 3: segment 0 acts while slot 'mask' of segment 1 is live, which is marked RECOMPUTE");
}

TEST(Verify, Retained) {
  Build b;
  b.node({item("act", 16, 2), item("spent", 2, 1, {}, CKPT_SLOT_CONSUMED)}, {item("y", 4, 1)}, {0});
  b.refuses({forward(0, {0, 1, 2}), backward(0, {1})}, "action 1: backward 0 retains slot 'spent' of segment 'seg0', which it may overwrite (CONSUMED)");
  b.refuses({forward(0, {0, 1, 2}), backward(0, {3})}, "action 1: backward 0 retains item 3, segment 'seg0' has 3");
  b.accepts({forward(0, {0, 1, 2}), backward(0, {0, 2}), free_value(1), drop(0, {0})});
}

TEST(Verify, ReadAtEnd) {
  Build b = two();
  b.graph.values[1].read_at_end = true;
  b.refuses({forward(0, {0, 1}), forward(1, {0, 1}, {}), free_value(2), backward(1), backward(0), free_value(1)}, "action 5: free of boundary 1, which is not live");
  // Its free is the first action of the backward pass: the forward pass holds it.
  Verified v = b.accepts({forward(0, {0, 1}), forward(1, {0, 1}), free_value(2), free_value(1), forward(0, {1}), backward(1), backward(0)});
  EXPECT_EQ(v.held, 8u + 16 + 4 + 16);
  Build in_place;
  Item y = item("y", 4, 1);
  y.in_place_input = 1;
  in_place.node({}, {item("y", 4, 1)}, {0});
  in_place.node({}, {y}, {1}, {CKPT_INPUT_BACKWARD_IGNORES});
  in_place.accepts({forward(0, {0}), forward(1, {0}, {0}), backward(1), backward(0)});
  in_place.graph.values[1].read_at_end = true;
  in_place.refuses({forward(0, {0}), forward(1, {0}, {0})}, "action 1: the forward pass is over and boundary 1, which is read then, is not live");
}

TEST(Verify, InPlace) {
  Build b;
  Item y = item("y", 8, 1), z = item("z", 8, 1), other = item("other", 9, 1);
  y.in_place_input = z.in_place_input = other.in_place_input = 1;
  b.node({item("act", 8, 1)}, {y, z, other, item("none", 8, 1)}, {0}, {CKPT_INPUT_BACKWARD_IGNORES});
  Verified v = b.accepts({forward(0, {0, 1, 2, 3, 4}, {1}), backward(0)});
  EXPECT_EQ(v.peak, 8u + 8 + 8 + 9 + 8);
  b.refuses({forward(0, {0, 1, 2, 3, 4}, {1, 2})}, "action 0: forward 0 places 'z' over boundary 0, which is taken by another output");
  b.refuses({forward(0, {0, 1, 2, 3, 4}, {3})}, "action 0: forward 0 places 'other' over boundary 0, which has another size");
  b.refuses({forward(0, {0, 1, 2, 3, 4}, {4})}, "action 0: forward 0 places 'none' over an input, but it names none");
  b.refuses({forward(0, {0, 1, 2, 3, 4}, {0})}, "action 0: forward 0 places 'act' over an input, but it names none");
  b.refuses({forward(0, {0, 1, 2, 3, 4}, {1}), forward(0, {0})}, "action 1: forward 0 reads boundary 0, which is not live");
  // Not asked for, or there already: nothing to place.
  b.accepts({forward(0, {0, 1, 2, 3, 4}), forward(0, {0}, {1}), forward(0, {1}, {1}), backward(0)});
  Build caller(8, true);
  caller.node({}, {y}, {0}, {CKPT_INPUT_BACKWARD_IGNORES});
  caller.refuses({forward(0, {0}, {0})}, "action 0: forward 0 places 'y' over boundary 0, which is the caller's memory");
  Build twice;
  twice.node({}, {y}, {0, 0}, {CKPT_INPUT_BACKWARD_IGNORES, CKPT_INPUT_BACKWARD_IGNORES});
  twice.refuses({forward(0, {0}, {0})}, "action 0: forward 0 places 'y' over boundary 0, which is read twice by this segment");
  Build keep;
  keep.node({}, {item("x", 8, 1, {}, CKPT_OUTPUT_KEEP)}, {0});
  keep.node({}, {y}, {1}, {CKPT_INPUT_BACKWARD_IGNORES});
  keep.refuses({forward(0, {0}), forward(1, {0}, {0})}, "action 1: forward 1 places 'y' over boundary 1, which is marked KEEP");
}

TEST(Verify, GroupsRunTogether) {
  Build b(0);
  // One kernel makes a (alone: 7 s, from r) and b (5 s); both from r (1 s).
  b.node({item("r", 1, 1, {}, CKPT_SLOT_TRANSIENT), item("a", 2, 7, {0}, CKPT_SLOT_ALONE, 1), item("b", 4, 5, {0}, 0, 1)}, {item("y", 8, 0.5)}, {0});
  // The first run makes the group in 1 + 5 s.
  Verified v = b.accepts({forward(0, {1, 2, 3}), free_value(1), backward(0)});
  EXPECT_EQ(v.seconds, 1 + 5 + 0.5 + 1);
  EXPECT_EQ(v.peak, 1u + 2 + 4 + 8);
  // a by itself, as r is there: 7 s.
  v = b.accepts({forward(0, {0, 1, 2, 3}), free_value(1), drop(0, {1}), forward(0, {1}), backward(0)});
  EXPECT_EQ(v.recompute_seconds, 7);
  // r is not there: the kernel runs, and r first.
  v = b.accepts({forward(0, {1, 2, 3}), free_value(1), drop(0, {1}), forward(0, {1}), backward(0)});
  EXPECT_EQ(v.recompute_seconds, 6);
  // b cannot be made by itself.
  v = b.accepts({forward(0, {0, 1, 2, 3}), free_value(1), drop(0, {2}), forward(0, {2}), backward(0)});
  EXPECT_EQ(v.recompute_seconds, 5);
  EXPECT_EQ(v.peak, 15u);
}

TEST(Verify, WholeSegments) {
  Build b(0);
  b.node({item("saved", 16, 2)}, {item("y", 4, 3)}, {0}, {}, 0, 0, true, true);
  // Whatever is live: all seconds, but only what is missing takes memory.
  const Verified v = b.accepts({forward(0, {1}), forward(0, {0}), backward(0)});
  EXPECT_EQ(v.recompute_seconds, 5);
  EXPECT_EQ(v.peak, 20u);
}

TEST(Verify, ScratchOnlyWhereSomethingIsComputed) {
  Build b(0);
  b.node({}, {item("y", 4, 1)}, {0}, {}, 100, 50);
  EXPECT_EQ(b.accepts({forward(0, {0}), backward(0)}).peak, 104u);
  Build none(0);
  none.node({item("act", 200, 1)}, {item("y", 4, 1)}, {0}, {}, 100, 0);
  EXPECT_EQ(none.accepts({forward(0, {1}), forward(0, {0}), forward(0, {0, 1}), backward(0)}).peak, 304u);
  Build in_backward(0);
  in_backward.node({item("act", 200, 1)}, {item("y", 4, 1)}, {0}, {}, 0, 150);
  EXPECT_EQ(in_backward.accepts({forward(0, {0, 1}), forward(0, {0, 1}), backward(0)}).peak, 354u);
}

TEST(Verify, GradientsFromFirstContributionToTheirBackward) {
  // Two readers of boundary 1: the later one's backward takes its gradient, the other adds.
  Build b(1000, true, CKPT_GRAD_ARENA);
  b.node({}, {item("y", 10, 1)}, {0});
  b.node({}, {item("y", 20, 1)}, {1});
  b.node({}, {item("y", 40, 1)}, {1, 2});
  const std::vector<Action> forwards = {forward(0, {0}), forward(1, {0}), forward(2, {0})};
  std::vector<Action> actions = forwards;
  actions.insert(actions.end(), {free_value(3), backward(2), backward(1), backward(0)});
  // backward 2: 10 + 20 data, 10 + 20 gradients. backward 0: 10 data, gradients 10 + 1000.
  EXPECT_EQ(b.accepts(actions).peak, 10u + 10 + 1000);
  b.graph.values[0].grad = CKPT_GRAD_CALLER;
  EXPECT_EQ(b.accepts(actions).peak, 70u);  // the first run of the last
  b.graph.values[0].grad = CKPT_GRAD_NONE;
  b.graph.root_grads_in_arena = true;
  EXPECT_EQ(b.accepts(actions).peak, 70u + 40);  // the root's, from the start
  b.roots = {{3, false}};
  EXPECT_EQ(b.accepts(actions).peak, 70u);  // the segment seeds itself
}

TEST(Verify, GradientOverOutputs) {
  Build b(64, true, CKPT_GRAD_ARENA);
  b.node({}, {item("y", 64, 1)}, {0}, {CKPT_INPUT_GRAD_OVER_OUTPUT_0});
  b.graph.root_grads_in_arena = true;
  const std::vector<Action> actions = {forward(0, {0}), free_value(1), backward(0)};
  EXPECT_EQ(b.accepts(actions).peak, 128u);  // y and the root's gradient, which becomes the input's
  b.graph.root_grads_in_arena = false;       // the caller's is not written over
  EXPECT_EQ(b.accepts(actions).peak, 64u);
  b.graph.root_grads_in_arena = true;
  b.graph.values[0].grad_bytes = 200;  // another size
  EXPECT_EQ(b.accepts(actions).peak, 264u);
}

TEST(Verify, SegmentsThatNoGradientReaches) {
  Build b;
  b.node({item("act", 16, 2)}, {item("y", 4, 1)}, {0});
  b.node({item("act", 16, 2)}, {item("indices", 4, 1, {}, CKPT_OUTPUT_NO_GRAD)}, {1});
  b.node({item("act", 16, 2)}, {item("y", 4, 1)}, {2, 1}, {0, CKPT_INPUT_NO_GRAD});
  // Only the last backward runs: the others need nothing and only give back.
  Verified v = b.accepts({forward(0, {1}), forward(1, {1}), forward(2, {0, 1}), backward(2), free_value(1), backward(1), backward(0)});
  EXPECT_EQ(v.seconds, 1 + 1 + 3 + 1);
  b.refuses({forward(0, {1}), forward(1, {1}), forward(2, {0, 1}), backward(2), backward(0)}, "action 4: backward 0 out of order, expected backward 1");
  b.roots = {{1, true}};
  v = b.accepts({forward(0, {0, 1}), forward(1, {1}), forward(2, {1}), backward(2), backward(1), backward(0)});
  EXPECT_EQ(v.seconds, 3 + 1 + 1 + 1);
}

TEST(Verify, CallerMemoryNeverCounts) {
  Build b(8, true);
  Item loss = item("loss", 1000, 1);
  loss.caller_memory = true;
  b.node({}, {loss}, {0});
  EXPECT_EQ(b.accepts({forward(0, {0}), backward(0)}).peak, 0u);
  b.refuses({forward(0, {0}), free_value(1)}, "action 1: free of boundary 1, which is the caller's memory");
}

TEST(Verify, FootprintsAreRounded) {
  Build b(1);
  b.node({item("act", 65, 1)}, {item("y", 0, 1)}, {0}, {}, 1, 0);
  b.graph.rule.alignment_bytes = 64;
  const std::vector<Action> actions = {forward(0, {0, 1}), backward(0)};
  EXPECT_EQ(b.accepts(actions).peak, 64u + 128 + 64);
  b.graph.rule.guard_bytes = 64;  // around each block, one of no bytes too
  EXPECT_EQ(b.accepts(actions).peak, 192u + 256 + 128 + 192);
}

TEST(Verify, Roots) {
  const Build b = two();
  const std::vector<Root> beyond = {{3, true}}, twice = {{2, true}, {2, false}};
  EXPECT_EQ(verify(b.graph, beyond, {}, nullptr), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error(), "verify: root 3, expected a boundary below 3");
  EXPECT_EQ(verify(b.graph, twice, {}, nullptr), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error(), "verify: boundary 2 is given as a root twice");
}

TEST(Verify, LongPrograms) {
  // A chain of 100,000 segments, everything stored: boundaries of 4, slots of 16, input 8; the last backward adds a gradient.
  constexpr uint32_t n = 100000;
  Build b;
  b.node({item("act", 16, 2)}, {item("y", 4, 1, {0})}, {0});
  for (uint32_t i = 1; i < n; ++i) {
    const uint32_t inputs[] = {i};
    b.graph.add_node(b.graph.shapes[0].get(), inputs, nullptr, nullptr);
  }
  std::vector<Action> actions;
  for (uint32_t i = 0; i < n; ++i) actions.push_back(forward(i, {0, 1}));
  for (uint32_t i = n; i-- > 0;) actions.push_back(backward(i));
  const Verified v = b.accepts(actions);
  EXPECT_EQ(v.peak, 8 + size_t{20} * n + 4);
  EXPECT_EQ(v.seconds, 3.0 * n + 1);
}

}  // namespace
}  // namespace ckpt::plan
