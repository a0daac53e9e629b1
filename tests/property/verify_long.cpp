// Long programs: the verifier says of them what the simulator says, chain by chain and graph by graph.
#include <gtest/gtest.h>

#include "plan/make_plan.h"
#include "support/plan_walk.h"

namespace plan_test {
namespace {

// The same random nodes again and again: a graph of `count` nodes whose inputs are near, with a boundary that all read.
RandomGraph long_graph(uint32_t count, uint64_t seed) {
  Genes genes = Genes::endless(seed);
  RandomGraphLimits limits;
  limits.nodes = 12;
  limits.not_replayable = false;
  limits.read_at_end = false;
  limits.rare_roots = false;
  const RandomGraph few = random_graph(&genes, limits);
  RandomGraph r;
  r.graph.rule = few.graph.rule;
  r.graph.shapes = few.graph.shapes;
  r.graph.root_grads_in_arena = few.graph.root_grads_in_arena;
  r.graph.add_input(100, 0, false, CKPT_GRAD_ARENA);
  for (uint32_t i = 0; i < count; ++i) {
    const Shape *s = few.graph.shapes[genes.below(static_cast<uint32_t>(few.graph.shapes.size()))].get();
    std::vector<uint32_t> inputs;
    const uint32_t top = r.graph.value_count();
    for (uint32_t k = 0; k < s->input_count(); ++k) inputs.push_back(k == 0 ? top - 1 : genes.one_in(16) ? 0 : top - 1 - genes.below(std::min(top, 6u)));
    r.graph.add_node(s, inputs, nullptr, nullptr);
    r.graph.nodes[i].backward_seconds = genes.below(8) / 8.0;
  }
  r.roots = default_roots(r.graph);
  return r;
}

TEST(VerifyLong, AgreesWithTheSimulator) {
  size_t longest = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const RandomGraph r = long_graph(2000, seed);
    const GradientMap gradients = derive_gradients(r.graph, r.roots);
    for (const uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_UNIFORM}) {
      PlanRequest request;
      request.strategy = strategy;
      request.k = strategy == CKPT_STRATEGY_UNIFORM ? 100 : 0;
      Planned p;
      ASSERT_EQ(make_plan(r.graph, gradients, request, arena::Placer(), &p), CKPT_OK) << last_error();
      Verified v;
      ASSERT_EQ(verify(r.graph, r.roots, p.program.actions, &v), CKPT_OK) << last_error();
      EXPECT_EQ(v.peak, p.prediction.peak);
      EXPECT_EQ(v.held, p.prediction.held);
      EXPECT_EQ(v.seconds, p.prediction.seconds());
      EXPECT_EQ(v.recompute_seconds, p.prediction.recompute_seconds);
      longest = std::max(longest, p.program.actions.size());
      // Without its last backward, behind which at most an input is freed, it is refused there, and not before.
      std::vector<Action> fewer = p.program.actions;
      size_t last = fewer.size() - 1;
      while (fewer[last].kind == ActionKind::free) --last;
      ASSERT_EQ(fewer[last].kind, ActionKind::backward);
      EXPECT_GE(last + 1 + r.graph.inputs.size(), fewer.size());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(last));
      ASSERT_EQ(verify(r.graph, r.roots, fewer, &v), CKPT_ERROR_INVALID_PLAN);
      EXPECT_NE(std::string(last_error()).find("without backward 0"), std::string::npos) << last_error();
    }
  }
  EXPECT_GT(longest, 6000u);
}

}  // namespace
}  // namespace plan_test
