// The machine against a naive one, on random programs over random graphs: same verdict, same load, same peak, same seconds.
#include "support/plan_walk.h"

#include <rapidcheck/gtest.h>

#include "plan/make_plan.h"

namespace plan_test {
namespace {

using Numbers = std::vector<uint32_t>;

std::string describe(const RandomGraph &r, const std::vector<Action> &actions, const std::string &what) { return what + "\n" + text(r) + text(actions); }

RC_GTEST_PROP(Machine, EveryLegalProgramAgrees, (const Numbers &graph_numbers, const Numbers &walk_numbers)) {
  Genes for_graph(graph_numbers), for_walk(walk_numbers);
  const RandomGraph r = random_graph(&for_graph);
  Walk walk(r, &for_walk);
  const std::vector<Action> actions = walk.program(30);
  const std::string what = disagreement(r, actions);
  if (!what.empty()) RC_FAIL(describe(r, actions, what));
}

RC_GTEST_PROP(Machine, EveryMutatedProgramAgrees, (const Numbers &graph_numbers, const Numbers &walk_numbers, const Numbers &change_numbers)) {
  Genes for_graph(graph_numbers), for_walk(walk_numbers), for_change(change_numbers);
  const RandomGraph r = random_graph(&for_graph);
  Walk walk(r, &for_walk);
  const std::vector<Action> actions = mutate(r.graph, walk.program(10), &for_change);
  const std::string what = disagreement(r, actions);
  if (!what.empty()) RC_FAIL(describe(r, actions, what));
}

// Every strategy and every policy's way of making again, on graphs beyond the brute force's reach.
TEST(MachineSweep, WrittenProgramsAgree) {
  uint32_t programs = 0;
  for (uint64_t seed = 0; seed < 240 / kSlow; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xfeed00000000ull);
    const RandomGraph r = random_graph(&genes, {.nodes = 12, .slots = 5, .outputs = 3});
    const GradientMap gradients = derive_gradients(r.graph, r.roots);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text(r));
    for (uint32_t strategy = CKPT_STRATEGY_AUTO; strategy <= CKPT_STRATEGY_FULL; ++strategy) {
      PlanRequest request;
      request.strategy = strategy;
      if (strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK) request.k = 1 + genes.below(6);
      Planned planned;
      ASSERT_EQ(make_plan(r.graph, gradients, request, arena::Placer(), &planned), CKPT_OK) << last_error();
      ASSERT_EQ(disagreement(r, planned.program.actions), "") << strategy_name(strategy) << "\n" << text(planned.program.actions);
      ++programs;
    }
    for (const Again again : {Again::everything, Again::boundaries, Again::halves, Again::nothing}) {
      Policy policy;
      policy.again = again;
      for (const Node &n : r.graph.nodes) {
        policy.keep_slots.push_back({});
        for (uint32_t k = 0; k < n.shape->slot_count(); ++k)
          if (genes.one_in(2)) policy.keep_slots.back().set(k);
      }
      for (uint32_t v = 0; v < r.graph.value_count(); ++v) policy.keep_value.push_back(genes.one_in(2));
      Result<Program> written = write_step(r.graph, gradients, policy);
      ASSERT_TRUE(written.ok()) << last_error();
      ASSERT_EQ(disagreement(r, written->actions), "") << text(written->actions);
      ++programs;
    }
  }
  std::printf("%u programs\n", programs);
}

// A boundary that the walk gave away, brought back; and the backward pass from wherever the walk stopped.
TEST(MachineSweep, ProgramsFromAnyStateAgree) {
  uint32_t made = 0, backwards = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Genes genes = Genes::endless(seed ^ 0xdeed00000000ull);
    const RandomGraph r = random_graph(&genes, {.nodes = 6});
    const GradientMap gradients = derive_gradients(r.graph, r.roots);
    Walk walk(r, &genes);
    std::vector<Action> actions = walk.program(genes.below(30));
    const size_t cut = genes.below(static_cast<uint32_t>(actions.size()) + 1);
    PaperMachine machine(&r.graph, Paper{r.graph.rule, arena::Placer()});
    ASSERT_EQ(machine.start(gradients), CKPT_OK);
    for (size_t t = 0; t < cut; ++t) ASSERT_EQ(machine_act(&machine, gradients, actions[t]), CKPT_OK) << last_error();
    actions.resize(cut);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text(r) + text(actions));
    // What waits for another segment's action may not be there: slots marked RECOMPUTE.
    for (uint32_t i = 0; i < r.graph.node_count(); ++i)
      if (const Bits again = machine.state().live[i] & r.graph.nodes[i].shape->again(); !again.empty()) {
        actions.push_back({ActionKind::drop, i, again, {}});
        ASSERT_EQ(machine.drop(i, again), CKPT_OK);
      }
    const auto extend = [&](const Program &program) {
      std::vector<Action> all = actions;
      all.insert(all.end(), program.actions.begin(), program.actions.end());
      std::string rule;
      ASSERT_EQ(disagreement(r, all, &rule), "") << text(all);
      EXPECT_TRUE(rule.empty() || whole_step_rule(rule)) << rule << "\n" << text(all);
    };
    std::vector<uint32_t> gone;
    for (uint32_t v = 0; v < r.graph.value_count(); ++v)
      if (const uint32_t p = r.graph.values[v].producer; p != kNone && p < machine.state().nodes_run && !machine.value_live(v)) gone.push_back(v);
    if (!gone.empty() && machine.state().done == kNone) {
      Result<Program> program = write_make(r.graph, machine.state(), gone[genes.below(static_cast<uint32_t>(gone.size()))]);
      if (program.ok()) {  // else an input is gone
        extend(*program);
        ++made;
      }
    }
    if (machine.state().nodes_run == r.graph.node_count() && machine.state().done == kNone) {
      Result<Program> program = write_backward(r.graph, gradients, machine.state(), Again::boundaries, {});
      if (!program.ok()) continue;
      extend(*program);
      ++backwards;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(made, 100u);
  EXPECT_GT(backwards, 200u);
}

TEST(MachineSweep, LegalProgramsAgree) {
  uint32_t whole = 0, total = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Genes genes = Genes::endless(seed);
    const RandomGraph r = random_graph(&genes);
    Walk walk(r, &genes);
    const std::vector<Action> actions = walk.program(genes.below(60));
    const std::string what = disagreement(r, actions);
    ASSERT_EQ(what, "") << "seed " << seed << "\n" << text(r) << text(actions);
    whole += walk.whole();
    ++total;
  }
  EXPECT_GE(whole, total * 7 / 10);  // the walk does come home
  std::printf("%u of %u programs are whole steps\n", whole, total);
}

TEST(MachineSweep, MutatedProgramsAgree) {
  std::map<std::string, uint32_t> rules;
  for (uint64_t seed = 0; seed < 2500; ++seed) {
    Genes genes = Genes::endless(seed ^ 0x5eed00000000ull);
    const RandomGraph r = random_graph(&genes);
    Walk walk(r, &genes);
    const std::vector<Action> actions = walk.program(genes.below(20));
    for (uint32_t k = 0; k < 8; ++k) {
      const std::vector<Action> wrong = mutate(r.graph, actions, &genes);
      std::string rule;
      const std::string what = disagreement(r, wrong, &rule);
      ASSERT_EQ(what, "") << "seed " << seed << " mutation " << k << "\n" << text(r) << text(wrong);
      ++rules[rule];
    }
  }
  // Every rule was broken at some time. ("keep made twice" cannot be: a whole step keeps such an item from its first run on.)
  for (const char *rule : {"", "index", "kind", "order", "forward after backward", "mask", "first run without output", "input not live", "recompute slot lives on", "keep in first run", "not replayable",
                           "in place", "read at end", "backward mask", "consumed retained", "not live", "caller memory", "keep given back", "unfinished"})
    EXPECT_GT(rules[rule], 0u) << rule;
  for (const auto &[rule, count] : rules) std::printf("%6u %s\n", count, rule.empty() ? "(fine)" : rule.c_str());
}

}  // namespace
}  // namespace plan_test
