// Checkpoint programs are packed at their live load: random chains under every fixed strategy, up to 200 segments.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "plan/strategy.h"
#include "property/plan_graphs.h"
#include "support/pack_check.h"

namespace ckpt::plan {
namespace {

using testing::GraphMaker;
using testing::Kinds;

// A backend that writes down what is asked for and when.
struct Recorder {
  arena::SizeRule rule;
  std::vector<arena::PackBuffer> *buffers;
  uint64_t *now;

  BlockId allocate(size_t bytes, Side) {
    buffers->push_back({(*now)++, 0, rule.footprint(bytes)});
    return static_cast<BlockId>(buffers->size() - 1);
  }
  void free(BlockId block) noexcept { (*buffers)[block].end = (*now)++; }
};

std::vector<arena::PackBuffer> lifetimes_of(const Graph &g, const GradientMap &gradients, const Program &program) {
  std::vector<arena::PackBuffer> buffers;
  uint64_t now = 0;
  Machine<Recorder> machine(&g, Recorder{g.rule, &buffers, &now});
  EXPECT_EQ(machine.start(gradients), CKPT_OK);
  for (const Action &a : program.actions) {
    switch (a.kind) {
      case ActionKind::forward: {
        Machine<Recorder>::Run run;
        EXPECT_EQ(machine.begin_forward(a.index, a.want, a.in_place, &run), CKPT_OK);
        machine.end_forward(run);
        break;
      }
      case ActionKind::backward: {
        Machine<Recorder>::BackwardRun run;
        EXPECT_EQ(machine.begin_backward(a.index, a.want, gradients, &run), CKPT_OK);
        machine.end_backward(run);
        break;
      }
      case ActionKind::free: EXPECT_EQ(machine.free_value(a.index), CKPT_OK); break;
      case ActionKind::drop: EXPECT_EQ(machine.drop(a.index, a.want), CKPT_OK); break;
    }
  }
  machine.release_all();
  return buffers;
}

// What is not packed at its live load, as text.
std::string miss_of(const Graph &g, uint32_t strategy, uint32_t k) {
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PlanRequest request;
  request.strategy = strategy;
  request.k = k;
  Result<Policy> policy = fixed_policy(g, request);
  if (!policy.ok()) return last_error();
  Result<Program> program = write_step(g, gradients, *policy);
  if (!program.ok()) return last_error();
  const std::vector<arena::PackBuffer> buffers = lifetimes_of(g, gradients, *program);
  arena::Packing p;
  if (arena::pack(buffers, {}, &p)) return last_error();
  if (std::string fault = arena::testing::fault_of(buffers, p); !fault.empty()) return fault;
  if (p.lower_bound != arena::testing::largest_load(buffers)) return "lower bound " + std::to_string(p.lower_bound);
  if (p.height == p.lower_bound) return "";
  return std::string(strategy_name(strategy)) + ":" + std::to_string(k) + " of " + std::to_string(g.node_count()) + " segments, " + std::to_string(buffers.size()) +
         " buffers: height " + std::to_string(p.height) + ", live load " + std::to_string(p.lower_bound);
}

constexpr uint32_t kStrategies[] = {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_UNIFORM, CKPT_STRATEGY_BLOCK, CKPT_STRATEGY_FULL};

RC_GTEST_PROP(PackPrograms, AnyGraphIsPackedAtItsLiveLoad, ()) {
  Kinds kinds;
  kinds.nodes_high = 12;
  const Graph g = GraphMaker([](uint32_t low, uint32_t high) { return *rc::gen::inRange(low, high + 1); }, kinds).make();
  const uint32_t strategy = kStrategies[*rc::gen::inRange<size_t>(0, std::size(kStrategies))];
  const bool needs_k = strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK;
  const std::string miss = miss_of(g, strategy, needs_k ? 1 + *rc::gen::inRange(0u, g.node_count()) : 0);
  if (!miss.empty()) RC_FAIL(miss);
}

// The same seeds each time: long ones are not for shrinking.
TEST(pack_programs, long_chains_are_packed_at_their_live_load) {
  std::mt19937 random(1);
  for (const uint32_t n : {30u, 60u, 100u, 150u, 200u}) {
    Kinds kinds;
    kinds.skips = kinds.odd = kinds.marks = false;
    kinds.nodes_low = kinds.nodes_high = n;
    kinds.slots_high = 6;
    const Graph g = GraphMaker([&](uint32_t low, uint32_t high) { return low + static_cast<uint32_t>(random() % (high - low + 1)); }, kinds).make();
    for (const uint32_t strategy : kStrategies) {
      if (strategy == CKPT_STRATEGY_FULL && n > 60) continue;  // n * n runs: nobody's program
      const bool needs_k = strategy == CKPT_STRATEGY_UNIFORM || strategy == CKPT_STRATEGY_BLOCK;
      EXPECT_EQ(miss_of(g, strategy, needs_k ? 1 + static_cast<uint32_t>(random() % n) : 0), "");
    }
  }
}

}  // namespace
}  // namespace ckpt::plan
