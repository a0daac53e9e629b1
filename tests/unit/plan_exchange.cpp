// Programs in C's form and back, placing over an input included; hashes.
#include "plan/exchange.h"

#include <gtest/gtest.h>

#include "plan/generate.h"
#include "plan/simulate.h"

namespace {

using namespace ckpt;
using namespace ckpt::plan;

Item item(const char *name, size_t bytes, uint32_t flags = 0, uint32_t in_place_input = 0) {
  Item it;
  it.name = name;
  it.bytes = bytes;
  it.flags = flags;
  it.in_place_input = in_place_input;
  return it;
}

struct Built {
  Graph graph;
  GradientMap gradients;

  Built() {
    graph.rule.alignment_bytes = 16;
    graph.add_input(16, 0, false, CKPT_GRAD_NONE);
  }
  uint32_t add(std::vector<Item> slots, std::vector<Item> outputs, std::vector<uint32_t> inputs, uint32_t input_flags = CKPT_INPUT_BACKWARD_IGNORES) {
    auto s = Shape::create("node" + std::to_string(graph.node_count()), std::move(slots), std::move(outputs), std::vector<uint32_t>(inputs.size(), input_flags), 0, 0, true, false);
    EXPECT_TRUE(s.ok()) << last_error();
    graph.shapes.push_back(std::make_shared<const Shape>(std::move(*s)));
    return graph.add_node(graph.shapes.back().get(), inputs, nullptr, nullptr);
  }
  Program step(Again again, bool keep) {
    gradients = derive_gradients(graph, default_roots(graph));
    Policy p;
    p.keep_slots.assign(graph.node_count(), keep ? Bits::first(256) : Bits{});
    p.keep_value.assign(graph.value_count(), keep);
    p.again = again;
    auto program = write_step(graph, gradients, p);
    EXPECT_TRUE(program.ok()) << last_error();
    return std::move(*program);
  }
};

void expect_round_trip(const Graph &graph, const Program &program) {
  const std::vector<ckpt_action> c = program_to_c(graph, program.actions);
  Result<Program> back = program_from_c("f", graph, c);
  ASSERT_TRUE(back.ok()) << last_error();
  ASSERT_EQ(back->actions.size(), program.actions.size());
  for (size_t k = 0; k < program.actions.size(); ++k) EXPECT_EQ(back->actions[k], program.actions[k]) << k;
}

ckpt_action action(uint32_t kind, uint32_t index, uint64_t slots = 0, uint64_t outputs = 0) {
  ckpt_action a{};
  a.kind = kind;
  a.index = index;
  a.slots[0] = slots;
  a.outputs[0] = outputs;
  return a;
}

TEST(Exchange, SlotsAndOutputsHaveMasksOfTheirOwn) {
  Built b;
  std::vector<Item> slots, outputs;
  std::vector<std::string> names;
  for (int k = 0; k < 200; ++k) names.push_back("x" + std::to_string(k));
  for (int k = 0; k < 130; ++k) slots.push_back(item(names[k].c_str(), 16));
  for (int k = 130; k < 200; ++k) outputs.push_back(item(names[k].c_str(), 16));
  b.add(std::move(slots), std::move(outputs), {0});
  const Program p = b.step(Again::boundaries, true);
  const std::vector<ckpt_action> c = program_to_c(b.graph, p.actions);
  ASSERT_EQ(c[0].kind, static_cast<uint32_t>(CKPT_ACTION_FORWARD));
  EXPECT_EQ(c[0].slots[0], UINT64_MAX);
  EXPECT_EQ(c[0].slots[1], UINT64_MAX);
  EXPECT_EQ(c[0].slots[2], 3u);
  EXPECT_EQ(c[0].slots[3], 0u);
  EXPECT_EQ(c[0].outputs[0], UINT64_MAX);
  EXPECT_EQ(c[0].outputs[1], 63u);
  expect_round_trip(b.graph, p);
}

// x -> y over x -> z over y: both outputs take over what dies under them.
TEST(Exchange, PlacingOverAnInputIsAFreeBehindTheForward) {
  Built b;
  b.add({item("s", 32)}, {item("y", 16, 0, 1)}, {0});
  b.add({item("s", 32)}, {item("z", 10, 0, 1)}, {1});
  const Program p = b.step(Again::boundaries, true);
  ASSERT_EQ(p.actions[0].in_place, Bits::one(1)) << "the input takes 16 bytes, as y does";
  ASSERT_EQ(p.actions[1].in_place, Bits::one(1));
  const std::vector<ckpt_action> c = program_to_c(b.graph, p.actions);
  ASSERT_EQ(c.size(), p.actions.size() + 2);
  EXPECT_EQ(c[1].kind, static_cast<uint32_t>(CKPT_ACTION_FREE));
  EXPECT_EQ(c[1].index, 0u);
  EXPECT_EQ(c[3].kind, static_cast<uint32_t>(CKPT_ACTION_FREE));
  EXPECT_EQ(c[3].index, 1u);
  expect_round_trip(b.graph, p);
}

TEST(Exchange, AFreeIsOnlyPlacingWhereTheMachineAllowsIt) {
  const auto contracted = [](Built &b, const std::vector<ckpt_action> &c) {
    const Result<Program> p = program_from_c("f", b.graph, c);
    EXPECT_TRUE(p.ok()) << last_error();
    size_t count = 0;
    for (const Action &a : p.ok() ? (*p).actions : std::vector<Action>()) count += a.in_place.count();
    return count;
  };
  const std::vector<ckpt_action> c = {action(CKPT_ACTION_FORWARD, 0, 0, 1), action(CKPT_ACTION_FREE, 0)};
  Built yes;
  yes.add({}, {item("y", 16, 0, 1)}, {0});
  EXPECT_EQ(contracted(yes, c), 1u);
  Built no_flag;
  no_flag.add({}, {item("y", 16)}, {0});
  EXPECT_EQ(contracted(no_flag, c), 0u);
  Built other_size;
  other_size.add({}, {item("y", 17, 0, 1)}, {0});
  EXPECT_EQ(contracted(other_size, c), 0u);
  Built read_twice;
  read_twice.add({}, {item("y", 16, 0, 1)}, {0, 0});
  EXPECT_EQ(contracted(read_twice, c), 0u);
  Built keep;
  keep.add({}, {item("y", 16, CKPT_OUTPUT_KEEP)}, {0});
  keep.add({}, {item("z", 16, 0, 1)}, {1});
  EXPECT_EQ(contracted(keep, {action(CKPT_ACTION_FORWARD, 0, 0, 1), action(CKPT_ACTION_FORWARD, 1, 0, 1), action(CKPT_ACTION_FREE, 1)}), 0u);
  Built two;
  two.add({}, {item("y", 16, 0, 1), item("z", 16, 0, 1)}, {0});
  EXPECT_EQ(contracted(two, {action(CKPT_ACTION_FORWARD, 0, 0, 3), action(CKPT_ACTION_FREE, 0)}), 1u) << "one block, one output over it";
  Built later;  // something else in between
  later.add({}, {item("y", 16, 0, 1)}, {0});
  later.add({}, {item("z", 16)}, {1});
  EXPECT_EQ(contracted(later, {action(CKPT_ACTION_FORWARD, 0, 0, 1), action(CKPT_ACTION_FORWARD, 1, 0, 1), action(CKPT_ACTION_FREE, 0)}), 0u);
  Built at_end;  // what the user reads until the backward pass begins
  at_end.add({}, {item("y", 16, 0, 1)}, {0});
  at_end.graph.values[0].read_at_end = true;
  EXPECT_EQ(contracted(at_end, c), 0u);
  Built again;  // an output that is live already is not made, so it takes over nothing
  again.add({item("s", 16)}, {item("y", 16, 0, 1)}, {0});
  EXPECT_EQ(contracted(again, {action(CKPT_ACTION_FORWARD, 0, 0, 1), action(CKPT_ACTION_FORWARD, 0, 1, 1), action(CKPT_ACTION_FREE, 0)}), 0u);
}

TEST(Exchange, RefusesWhatIsNoActionOfTheGraph) {
  Built b;
  b.add({item("s", 32)}, {item("y", 16)}, {0});
  const auto refused = [&](ckpt_action bad, const char *part) {
    const ckpt_action c[] = {action(CKPT_ACTION_FORWARD, 0, 1, 1), bad};
    const Result<Program> p = program_from_c("f", b.graph, c);
    EXPECT_EQ(p.status(), CKPT_ERROR_INVALID_PLAN);
    EXPECT_NE(std::string(last_error()).find(part), std::string::npos) << last_error();
  };
  refused(action(4, 0), "f: action 1: kind is 4");
  refused(action(CKPT_ACTION_FORWARD, 1, 1), "action 1: segment 1, expected one below 1");
  refused(action(CKPT_ACTION_BACKWARD, 7), "action 1: segment 7");
  refused(action(CKPT_ACTION_FREE, 2), "action 1: free of boundary 2, expected one below 2");
  refused(action(CKPT_ACTION_FREE, 1, 1), "action 1: free of boundary 1 with a mask");
  refused(action(CKPT_ACTION_FORWARD, 0, 2), "action 1: a slot that segment 'node0' (number 0) does not have");
  refused(action(CKPT_ACTION_FORWARD, 0, 1, 2), "action 1: an output that segment 'node0' (number 0) does not have");
  refused(action(CKPT_ACTION_DROP, 0, 1, 1), "action 1: drop of an output of segment 'node0' (number 0), expected free");
  ckpt_action far = action(CKPT_ACTION_FORWARD, 0);
  far.slots[3] = uint64_t{1} << 63;
  refused(far, "a slot that segment 'node0'");
}

TEST(Exchange, HashIsOfGraphAndActions) {
  const std::vector<ckpt_action> a = {action(0, 0, 1, 1), action(1, 0)}, b = {action(0, 0, 1, 1), action(1, 0), action(2, 0)}, c = {action(0, 0, 1), action(1, 0)};
  EXPECT_EQ(program_hash(5, a), program_hash(5, a));
  EXPECT_NE(program_hash(5, a), program_hash(6, a));
  EXPECT_NE(program_hash(5, a), program_hash(5, b));
  EXPECT_NE(program_hash(5, a), program_hash(5, c));
  // Frozen: the same on every machine and in every version.
  EXPECT_EQ(program_hash(0, {}), 0x88201fb960ff6465ull);
}

}  // namespace
