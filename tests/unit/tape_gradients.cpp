// Gradients that meet: a value used twice, gradients over gradients, several roots, skipped segments, inputs.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

// Unknown, then planned; under each of a few strategies.
void check(Net &net, const char *what) {
  SCOPED_TRACE(what);
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL}) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Options o;
    o.strategy = strategy;
    Session s(o);
    for (uint64_t at = 0; at < 3; ++at) {
      const Result expected = plain(net, o.seed, at);
      const Step got = s.step(net, 0, 0, false);
      ASSERT_EQ(got.status, CKPT_OK) << got.text;
      EXPECT_EQ(difference(got.result, expected), "");
      EXPECT_EQ(got.stats.planned, at > 0 ? 1u : 0u);
    }
  }
}

TEST(TapeGradients, ValueUsedTwiceByOneSegment) {
  for (bool over : {false, true}) {
    Net net;
    const uint32_t x = net.then<Linear>(net.input(24, false), "first", size_t{1}, size_t{24}, size_t{24});
    const uint32_t y = net.add(net.make<Add>("x + x", size_t{24}, over), {x, x});
    net.root(net.then<Loss>(y, "loss", size_t{24}, true));
    check(net, over ? "x + x, gradient over the output's" : "x + x");
  }
}

TEST(TapeGradients, InputUsedTwiceByOneSegment) {
  for (bool accumulate : {false, true}) {
    Net net;
    const uint32_t x = net.input(24, true, 3, accumulate);
    const uint32_t y = net.add(net.make<Mul>("x x", size_t{24}), {x, x});
    net.root(net.then<Loss>(y, "loss", size_t{24}, true));
    check(net, accumulate ? "x x, accumulated" : "x x");
  }
}

}  // namespace
