// One step, unknown and planned, against the plain executor.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

Net chain(uint32_t blocks) {
  Net net;
  uint32_t x = net.input(48, true);
  for (uint32_t b = 0; b < blocks; ++b) x = net.then<Mlp>(x, "mlp" + std::to_string(b), size_t{48}, b + 1);
  x = net.then<Loss>(x, "loss", size_t{48}, true);
  net.root(x);
  return net;
}

TEST(TapeBasic, UnknownStepEqualsPlain) {
  Net net = chain(4);
  const Result expected = plain(net, 42, 0);
  Session s({});
  const Step got = s.step(net, 0, 0, false);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, expected), "");
  EXPECT_EQ(got.stats.recompute_count, 0u);
  EXPECT_EQ(got.stats.planned, 0u);
}

TEST(TapeBasic, DryThenPlannedStepEqualsPlain) {
  Net net = chain(4);
  const Result expected = plain(net, 42, 0);
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO}) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Options o;
    o.strategy = strategy;
    Session s(o);
    const Step dry = s.step(net, 5, CKPT_TAPE_DRY);
    ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
    const Step got = s.step(net, 5);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected), "");
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    EXPECT_EQ(dry.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  }
}

}  // namespace
