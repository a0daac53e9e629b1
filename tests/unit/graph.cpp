// Numbering and sums of a graph, and which gradients exist, against a derivation that asks each value by itself.
#include "plan/graph.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "support/plan_random.h"

namespace {

using namespace plan_test;

// ---- gradients, value by value ----

// What a value's gradient is made of, found by definition: contributions of nodes that run, in the order of the backwards.
class ByDefinition {
 public:
  ByDefinition(const Graph &graph, std::span<const Root> roots) : graph_(graph), roots_(roots), runs_(graph.node_count()) {}

  bool runs(uint32_t node) {
    if (!runs_[node]) {
      bool yes = false;
      const Node &n = graph_.nodes[node];
      for (uint32_t k = 0; k < n.shape->output_count(); ++k) yes = yes || root(n.first_value + k) || !contributions(n.first_value + k).empty();
      runs_[node] = yes;
    }
    return *runs_[node];
  }
  // Entries of node_inputs: of the last node first, within a node in order.
  std::vector<uint32_t> contributions(uint32_t value) {
    std::vector<uint32_t> found;
    for (uint32_t i = graph_.node_count(); i-- > 0;)
      for (uint32_t k = 0; k < graph_.nodes[i].shape->input_count(); ++k) {
        const uint32_t entry = graph_.nodes[i].first_input + k;
        if (graph_.node_inputs[entry] != value || graph_.values[value].grad == CKPT_GRAD_NONE) continue;
        if ((graph_.nodes[i].shape->input_flags(k) & CKPT_INPUT_NO_GRAD) || !runs(i)) continue;
        found.push_back(entry);
      }
    return found;
  }
  const Root *root(uint32_t value) const {
    for (const Root &r : roots_)
      if (r.value == value) return &r;
    return nullptr;
  }
  bool user_has_it(uint32_t value) const { return root(value) != nullptr && root(value)->has_grad; }
  // When the value's own backward begins, is its gradient a block of the arena?
  bool in_arena(uint32_t value) {
    if (user_has_it(value) && graph_.root_grads_in_arena) return true;
    return graph_.values[value].grad == CKPT_GRAD_ARENA && !contributions(value).empty();
  }
  // May this entry's gradient be placed over output 0's, as far as the two alone tell?
  bool may_lie_over(uint32_t node, uint32_t k) {
    const Node &n = graph_.nodes[node];
    const uint32_t value = graph_.node_inputs[n.first_input + k];
    if (!(n.shape->input_flags(k) & CKPT_INPUT_GRAD_OVER_OUTPUT_0) || n.shape->output_count() == 0 || !in_arena(n.first_value)) return false;
    const std::vector<uint32_t> c = contributions(value);
    if (user_has_it(value) || graph_.values[value].grad != CKPT_GRAD_ARENA || c.empty() || c[0] != n.first_input + k) return false;
    for (uint32_t j = 0; j < n.shape->input_count(); ++j)
      if (j != k && graph_.node_inputs[n.first_input + j] == value) return false;
    return graph_.rule.footprint(graph_.values[value].grad_bytes) == graph_.rule.footprint(graph_.values[n.first_value].grad_bytes);
  }
  GradMode mode(uint32_t node, uint32_t k) {
    const uint32_t entry = graph_.nodes[node].first_input + k, value = graph_.node_inputs[entry];
    const std::vector<uint32_t> c = contributions(value);
    if (std::find(c.begin(), c.end(), entry) == c.end()) return GradMode::none;
    if (user_has_it(value) || c[0] != entry) return GradMode::accumulate;
    for (uint32_t j = 0; j < k; ++j)
      if (may_lie_over(node, j)) return GradMode::first;  // its place is taken
    return may_lie_over(node, k) ? GradMode::over : GradMode::first;
  }

 private:
  const Graph &graph_;
  std::span<const Root> roots_;
  std::vector<std::optional<bool>> runs_;
};

// Counts per mode, so that the test can tell that it met each; "" where all agree.
std::string compare(const RandomGraph &r, uint32_t (*met)[4]) {
  const GradientMap map = derive_gradients(r.graph, r.roots);
  ByDefinition d(r.graph, r.roots);
  for (uint32_t v = 0; v < r.graph.value_count(); ++v)
    if ((map.value_has_grad[v] != 0) != (d.user_has_it(v) || !d.contributions(v).empty())) return "value " + std::to_string(v);
  for (uint32_t i = 0; i < r.graph.node_count(); ++i) {
    if ((map.runs[i] != 0) != d.runs(i)) return "node " + std::to_string(i);
    for (uint32_t k = 0; k < r.graph.nodes[i].shape->input_count(); ++k) {
      const GradMode mode = map.mode[r.graph.nodes[i].first_input + k];
      if (mode != d.mode(i, k)) return "input " + std::to_string(k) + " of node " + std::to_string(i) + ": mode " + std::to_string(static_cast<int>(mode)) + ", by definition " + std::to_string(static_cast<int>(d.mode(i, k)));
      ++(*met)[static_cast<size_t>(mode)];
    }
  }
  return "";
}

TEST(Gradients, AsByDefinition) {
  uint32_t met[4] = {};
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    Genes genes = Genes::endless(seed);
    const RandomGraph r = random_graph(&genes);
    ASSERT_EQ(compare(r, &met), "") << "seed " << seed;
  }
  for (const uint32_t count : met) EXPECT_GT(count, 100u);
}

RC_GTEST_PROP(Gradients, AsByDefinitionShrinking, ()) {
  Genes genes(*rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 4096)));
  const RandomGraph r = random_graph(&genes);
  uint32_t met[4] = {};
  const std::string found = compare(r, &met);
  if (!found.empty()) RC_FAIL(found);
}

// ---- by hand ----

Item item(const char *name, size_t bytes, double seconds, uint32_t flags = 0, uint32_t group = 0) {
  Item it;
  it.name = name;
  it.bytes = bytes;
  it.cost_seconds = seconds;
  it.flags = flags;
  it.group = group;
  return it;
}

uint32_t add(Graph *g, std::vector<Item> slots, std::vector<Item> outputs, std::vector<uint32_t> inputs, std::vector<uint32_t> flags, bool whole = false) {
  auto s = Shape::create("n" + std::to_string(g->node_count()), std::move(slots), std::move(outputs), std::move(flags), 0, 0, true, whole);
  EXPECT_TRUE(s.ok()) << last_error();
  g->shapes.push_back(std::make_shared<const Shape>(std::move(*s)));
  return g->add_node(g->shapes.back().get(), inputs, nullptr, nullptr);
}

TEST(Graph, NumbersValuesInOrder) {
  Graph g;
  g.rule.alignment_bytes = 64;
  EXPECT_EQ(g.add_input(10, 0, false, CKPT_GRAD_ARENA), 0u);
  EXPECT_EQ(add(&g, {item("a", 5, 1)}, {item("o", 7, 2), item("p", 9, 3, CKPT_OUTPUT_NO_GRAD)}, {0}, {0}), 0u);
  EXPECT_EQ(g.add_input(11, 12, true, CKPT_GRAD_NONE), 3u);  // an input that comes later
  const size_t slot_bytes[] = {65}, output_bytes[] = {128};
  const uint32_t inputs[] = {1, 3};
  auto s = Shape::create("late", {item("a", 5, 1)}, {item("o", 7, 2)}, {0, 0}, 0, 0, true, false);
  g.shapes.push_back(std::make_shared<const Shape>(std::move(*s)));
  EXPECT_EQ(g.add_node(g.shapes.back().get(), inputs, slot_bytes, output_bytes), 1u);

  ASSERT_EQ(g.value_count(), 5u);
  EXPECT_EQ(g.value_of(0, 1), 1u);
  EXPECT_EQ(g.value_of(0, 2), 2u);
  EXPECT_EQ(g.value_of(1, 1), 4u);
  EXPECT_EQ(g.inputs, (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(g.values[3].item, 1u);
  EXPECT_EQ(g.values[0].grad_bytes, 10u);  // 0: as bytes
  EXPECT_EQ(g.values[3].grad_bytes, 12u);
  EXPECT_EQ(g.values[2].grad, CKPT_GRAD_NONE);
  EXPECT_EQ(g.values[4].bytes, 128u);
  EXPECT_EQ(g.values[4].grad_bytes, 128u);
  EXPECT_EQ(g.bytes_of(0, 0), 5u);
  EXPECT_EQ(g.bytes_of(1, 0), 65u);
  EXPECT_EQ(g.item_footprint(1, 0), 128u);
  EXPECT_EQ(std::vector<uint32_t>(g.inputs_of(1).begin(), g.inputs_of(1).end()), (std::vector<uint32_t>{1, 3}));
}

TEST(Graph, SecondsOfGroupsAndWholeSegments) {
  Graph g;
  g.add_input(1, 0, true, CKPT_GRAD_NONE);
  add(&g, {item("a", 1, 1, 0, 1), item("b", 1, 2, CKPT_SLOT_ALONE, 1)}, {item("o", 1, 4)}, {0}, {0});
  add(&g, {item("a", 1, 1, 0, 1), item("b", 1, 2, CKPT_SLOT_ALONE, 1)}, {item("o", 1, 4)}, {1}, {0}, true);
  const Bits a = Bits::one(0), b = Bits::one(1), o = Bits::one(2);
  EXPECT_EQ(g.seconds(0, {Bits{}, Bits{}}), 0.0);
  EXPECT_EQ(g.seconds(0, {o, Bits{}}), 4.0);
  EXPECT_EQ(g.seconds(0, {a | b, Bits{}}), 1.0);  // the kernel's cost is its members' without ALONE ones
  EXPECT_EQ(g.seconds(0, {b, b}), 2.0);
  EXPECT_EQ(g.seconds(0, {a | b | o, Bits{}}), 5.0);
  EXPECT_EQ(g.seconds(1, {Bits{}, Bits{}}), 0.0);
  EXPECT_EQ(g.seconds(1, {o, Bits{}}), 5.0);
  EXPECT_EQ(g.forward_seconds(), 10.0);
  g.nodes[0].backward_seconds = 3;
  g.nodes[1].backward_seconds = 5;
  EXPECT_EQ(g.backward_seconds(), 8.0);
}

TEST(Graph, DefaultRootsAreWhatNobodyReads) {
  Graph g;
  g.add_input(1, 0, true, CKPT_GRAD_ARENA);
  add(&g, {}, {item("o", 1, 1), item("p", 1, 1), item("q", 1, 1, CKPT_OUTPUT_NO_GRAD)}, {0}, {0});
  add(&g, {}, {item("o", 1, 1)}, {1}, {0});
  g.add_input(1, 0, true, CKPT_GRAD_ARENA);  // an input that nobody reads is no root
  const auto roots = default_roots(g);
  ASSERT_EQ(roots.size(), 2u);
  EXPECT_EQ(roots[0].value, 2u);
  EXPECT_EQ(roots[1].value, 4u);
  EXPECT_TRUE(roots[0].has_grad && roots[1].has_grad);
}

TEST(Graph, HashIsOfStructureAndSizesNotSeconds) {
  const auto make = [](double seconds, size_t bytes, uint32_t input) {
    Graph g;
    g.add_input(1, 0, true, CKPT_GRAD_NONE);
    add(&g, {}, {item("o", bytes, seconds)}, {0}, {0});
    add(&g, {}, {item("o", bytes, seconds)}, {input}, {0});
    return g;
  };
  const uint64_t hash = make(1, 8, 1).hash();
  EXPECT_EQ(make(2, 8, 1).hash(), hash);
  EXPECT_NE(make(1, 9, 1).hash(), hash);
  EXPECT_NE(make(1, 8, 0).hash(), hash);
  Graph g = make(1, 8, 1);
  g.rule.guard_bytes = 256;
  EXPECT_NE(g.hash(), hash);
  g = make(1, 8, 1);
  g.rule.alignment_bytes = 1;
  EXPECT_NE(g.hash(), hash);
  g = make(1, 8, 1);
  g.values[1].grad_bytes = 4;
  EXPECT_NE(g.hash(), hash);
  g = make(1, 8, 1);
  g.root_grads_in_arena = true;
  EXPECT_NE(g.hash(), hash);
}

// A residual stream x1 = x0 + f(x0): its gradient lies over the output's only where x0's first contribution is this one.
TEST(Gradients, ResidualStream) {
  Graph g;
  g.add_input(8, 0, true, CKPT_GRAD_ARENA);
  add(&g, {}, {item("o", 8, 1)}, {0}, {CKPT_INPUT_GRAD_OVER_OUTPUT_0});
  add(&g, {}, {item("o", 8, 1)}, {1}, {CKPT_INPUT_GRAD_OVER_OUTPUT_0});
  add(&g, {}, {item("o", 8, 1)}, {2}, {CKPT_INPUT_GRAD_OVER_OUTPUT_0});
  GradientMap map = derive_gradients(g, default_roots(g));
  // The last output's gradient is the caller's: nothing may be placed over it.
  EXPECT_EQ(map.mode, (std::vector<GradMode>{GradMode::over, GradMode::over, GradMode::first}));
  g.root_grads_in_arena = true;
  map = derive_gradients(g, default_roots(g));
  EXPECT_EQ(map.mode, (std::vector<GradMode>{GradMode::over, GradMode::over, GradMode::over}));
  const Root roots[] = {{3, true}, {1, true}};  // the user seeds x1 too
  map = derive_gradients(g, roots);
  EXPECT_EQ(map.mode, (std::vector<GradMode>{GradMode::over, GradMode::accumulate, GradMode::over}));
  const Root seeded[] = {{3, false}};  // a loss that seeds itself has no gradient to lie over
  map = derive_gradients(g, seeded);
  EXPECT_EQ(map.mode, (std::vector<GradMode>{GradMode::over, GradMode::over, GradMode::first}));
  EXPECT_EQ(map.value_has_grad, (std::vector<uint8_t>{1, 1, 1, 0}));
}

TEST(Gradients, NodesThatNoGradientReaches) {
  Graph g;
  g.add_input(8, 0, true, CKPT_GRAD_NONE);
  add(&g, {}, {item("o", 8, 1)}, {0}, {0});
  add(&g, {}, {item("metric", 8, 1, CKPT_OUTPUT_NO_GRAD)}, {1}, {0});
  add(&g, {}, {item("o", 8, 1)}, {1}, {0});
  GradientMap map = derive_gradients(g, default_roots(g));
  EXPECT_EQ(map.runs, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(map.mode, (std::vector<GradMode>{GradMode::none, GradMode::none, GradMode::first}));
  map = derive_gradients(g, {});
  EXPECT_EQ(map.runs, (std::vector<uint8_t>{0, 0, 0}));
}

}  // namespace
