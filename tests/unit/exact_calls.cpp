// Several forwards of one segment in place of one: less memory where it is short, no trace of them where it is not.
#include <gtest/gtest.h>

#include "support/exact_checks.h"

namespace {

using namespace plan_test;

// One segment: slots of these bytes, each reads the one before; `needed` by backward or not; the output reads none of them.
ChainModel line(std::initializer_list<std::pair<uint32_t, bool>> slots, uint32_t output_bytes, bool reads_output) {
  ChainModel c;
  ModelSegment s;
  for (const auto &[bytes, needed] : slots) {
    ModelSlot slot;
    slot.bytes = bytes;
    slot.cost = 1;
    slot.transient = !needed;
    if (!s.slots.empty()) slot.reads = 1u << (s.slots.size() - 1);
    s.slots.push_back(slot);
  }
  s.output_bytes = output_bytes;
  s.output_cost = 1;
  s.reads_output = reads_output;
  s.reads_input = false;
  c.segments.push_back(s);
  return c;
}

void expect_least(const ChainModel &chain, size_t in_one_call, size_t in_several) {
  const Planning p(chain);
  EXPECT_EQ(p.planner(CKPT_CLASS_SIGMA)->minimum_load(), in_one_call) << text(chain);
  const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_SIGMA_S_W);
  ASSERT_EQ(planner->minimum_load(), in_several) << text(chain);
  exact::Answer a;
  ASSERT_EQ(planner->solve(in_several, 0, &a), CKPT_OK);
  EXPECT_EQ(wrong_with(a, in_several, p), "");
  EXPECT_EQ(proved(a, p), "");
}

TEST(ExactCalls, NeedLess) {
  // The output goes before the slot in the middle is made, and is made again.
  expect_least(line({{0, true}, {1, false}, {0, true}}, 1, true), 2, 1);
  // The first slot goes before the last one is made, and is made again.
  expect_least(line({{1, true}, {1, false}, {1, true}}, 0, false), 3, 2);
}

TEST(ExactCalls, AreOneWhereThatFits) {
  ChainModel chain = line({{4, true}, {2, false}, {3, true}}, 2, false);
  chain.segments[0].output_reads = 4;
  for (int k = 0; k < 3; ++k) chain.segments.push_back(chain.segments[0]);
  const Planning p(chain);
  const std::unique_ptr<exact::Planner> planner = p.planner(CKPT_CLASS_SIGMA_S_W);
  exact::Answer a;
  ASSERT_EQ(planner->solve(1000, 0, &a), CKPT_OK);
  EXPECT_EQ(a.overhead_seconds, 0);
  uint32_t forwards = 0, drops = 0;
  for (const Action &action : a.program.actions) {
    forwards += action.kind == ActionKind::forward;
    drops += action.kind == ActionKind::drop;
  }
  EXPECT_EQ(wrong_with(a, 1000, p), "");
  EXPECT_EQ(forwards, 4u);
  EXPECT_EQ(drops, 0u);
}

}  // namespace
