// Slots that contain their segment's input, as frameworks have them that own their memory.
#include <gtest/gtest.h>

#include "ckpt/plan.h"
#include "plan/handles.h"
#include "plan/verify.h"

namespace {

using namespace ckpt;
using namespace ckpt::plan;

// n whole segments: boundaries of 10 bytes, saved 10 + 25 * (i + 1), 1 s forward.
struct Held {
  explicit Held(uint32_t n, bool holds = true) : slots(n), segments(n) {
    output.name = "out";
    output.bytes = 10;
    for (uint32_t i = 0; i < n; ++i) {
      slots[i].name = "saved";
      slots[i].bytes = 10 + 25 * (i + 1);
      segments[i].name = "block";
      segments[i].forward_seconds = 1;
      segments[i].backward_seconds = 2;
      segments[i].slots = &slots[i];
      segments[i].slot_count = 1;
      segments[i].outputs = &output;
      segments[i].output_count = 1;
      segments[i].flags = CKPT_CHAIN_SEGMENT_WHOLE | (holds ? CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT : 0);
    }
    desc.struct_size = sizeof desc;
    desc.segment_size = sizeof(ckpt_chain_segment);
    desc.slot_size = sizeof(ckpt_slot);
    desc.output_size = sizeof(ckpt_output);
    input.bytes = 10;
    desc.inputs = &input;
    desc.input_count = 1;
    desc.segments = segments.data();
    desc.segment_count = n;
    desc.alignment_bytes = 1;
  }
  ckpt_chain *create() {
    ckpt_chain *chain = nullptr;
    EXPECT_EQ(ckpt_chain_create(&desc, &chain), CKPT_OK) << ckpt_last_error();
    return chain;
  }
  ckpt_output output{};
  ckpt_chain_input input{};
  std::vector<ckpt_slot> slots;
  std::vector<ckpt_chain_segment> segments;
  ckpt_chain_desc desc{};
};

ckpt_plan_summary summary(const ckpt_chain *chain, uint32_t strategy, size_t budget) {
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  d.strategy = strategy;
  d.budget_bytes = budget;
  ckpt_plan *plan = nullptr;
  EXPECT_EQ(ckpt_plan_create(chain, &d, &plan), CKPT_OK) << ckpt_last_error();
  ckpt_plan_summary s{};
  s.struct_size = sizeof s;
  ckpt_plan_get_summary(plan, &s);
  const Result<Program> program = program_from_c("test", *chain->graph, plan->actions);
  EXPECT_TRUE(program.ok());
  Verified verified;
  EXPECT_EQ(verify(*chain->graph, chain->roots, plan->planned.program.actions, &verified), CKPT_OK) << last_error();
  EXPECT_EQ(verified.peak, s.peak_bytes);
  ckpt_plan_destroy(plan);
  return s;
}

TEST(PlanHolds, TheInputCountsOnce) {
  Held with(3), without(3, false);
  ckpt_chain *a = with.create(), *b = without.create();
  // Input, slots of 25, 50, 75 beyond their inputs, boundaries 1 to 3, and in the last backward's place a boundary gradient.
  EXPECT_EQ(summary(a, CKPT_STRATEGY_STORE_ALL, 0).peak_bytes, 10u + 25 + 50 + 75 + 30);
  EXPECT_EQ(summary(b, CKPT_STRATEGY_STORE_ALL, 0).peak_bytes, 10u + 35 + 60 + 85 + 30);
  EXPECT_NE(ckpt_chain_hash(a), ckpt_chain_hash(b));
  ckpt_chain_destroy(a);
  ckpt_chain_destroy(b);
}

TEST(PlanHolds, ABoundaryStaysWhileASlotHoldsIt) {
  Held held(2);
  ckpt_chain *chain = held.create();
  ckpt_action actions[4] = {};
  for (int i = 0; i < 2; ++i) {
    actions[i].kind = CKPT_ACTION_FORWARD;
    actions[i].index = static_cast<uint32_t>(i);
    actions[i].slots[0] = actions[i].outputs[0] = 1;
  }
  actions[2].kind = CKPT_ACTION_FREE;
  actions[2].index = 1;
  EXPECT_EQ(ckpt_program_verify(chain, actions, 3, sizeof *actions, nullptr, nullptr, nullptr), CKPT_ERROR_INVALID_PLAN);
  EXPECT_NE(std::string(ckpt_last_error()).find("'saved' of segment 1 holds"), std::string::npos) << ckpt_last_error();
  ckpt_chain_destroy(chain);
}

TEST(PlanHolds, EveryBudgetGivesAValidPlan) {
  for (uint32_t n : {1u, 2u, 5u, 9u}) {
    Held held(n);
    ckpt_chain *chain = held.create();
    ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
    size_t least = 0;
    ASSERT_EQ(ckpt_plan_minimum_budget(chain, &d, &least), CKPT_OK);
    double seconds = 1e300;
    const size_t most = summary(chain, CKPT_STRATEGY_STORE_ALL, 0).arena_bytes;
    for (size_t budget = least; budget <= most; budget += 5) {
      const ckpt_plan_summary s = summary(chain, CKPT_STRATEGY_AUTO, budget);
      EXPECT_LE(s.arena_bytes, budget);
      EXPECT_LE(s.recompute_seconds, seconds);
      seconds = s.recompute_seconds;
    }
    EXPECT_EQ(summary(chain, CKPT_STRATEGY_AUTO, most).recompute_seconds, 0);
    for (uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) summary(chain, strategy, 0);
    ckpt_chain_destroy(chain);
  }
}

// Keeping a slot keeps what it holds: the opposite choice frees neither too early.
TEST(PlanHolds, ExplainsEveryItem) {
  for (uint32_t n : {2u, 4u, 7u}) {
    Held held(n);
    ckpt_chain *chain = held.create();
    ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
    ASSERT_EQ(ckpt_plan_minimum_budget(chain, &d, &d.budget_bytes), CKPT_OK);
    for (int step = 0; step < 4; ++step, d.budget_bytes += 30) {
      ckpt_plan *plan = nullptr;
      ASSERT_EQ(ckpt_plan_create(chain, &d, &plan), CKPT_OK) << ckpt_last_error();
      std::vector<ckpt_explanation> all(2 * n + 1);
      EXPECT_EQ(ckpt_plan_explain(chain, plan, 0, 2 * n + 1, sizeof all[0], all.data(), nullptr), CKPT_OK) << ckpt_last_error();
      ckpt_plan_destroy(plan);
    }
    ckpt_chain_destroy(chain);
  }
}

TEST(PlanHolds, RefusesWhatCannotHold) {
  Held small(2);
  small.slots[1].bytes = 9;
  ckpt_chain *chain = nullptr;
  EXPECT_EQ(ckpt_chain_create(&small.desc, &chain), CKPT_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ckpt_last_error()).find("bytes is 9, expected at least the 10"), std::string::npos) << ckpt_last_error();
  Held none(1);
  none.segments[0].slot_count = 0;
  none.segments[0].slots = nullptr;
  EXPECT_EQ(ckpt_chain_create(&none.desc, &chain), CKPT_ERROR_INVALID_ARGUMENT);
  none.segments[0].flags = 4;
  EXPECT_EQ(ckpt_chain_create(&none.desc, &chain), CKPT_ERROR_INVALID_ARGUMENT);
}

}  // namespace
