// The machine against a naive one, on random programs over random graphs: same verdict, same load, same peak, same seconds.
#include "support/plan_walk.h"

#include <rapidcheck/gtest.h>

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
