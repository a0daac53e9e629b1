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

TEST(TapeGradients, GradientsOverGradientsAlongAResidualStream) {
  Net net;
  uint32_t x = net.then<Linear>(net.input(24, true), "embed", size_t{1}, size_t{24}, size_t{24});
  for (uint32_t k = 0; k < 4; ++k) x = net.add(net.make<Add>("residual", size_t{24}, true), {x, net.then<Mlp>(x, "block", size_t{24}, k)});
  net.root(net.then<Loss>(x, "loss", size_t{24}, true));
  check(net, "residual stream");
}

TEST(TapeGradients, GradientOverTheOutputsSavesABuffer) {
  size_t height[2];
  for (bool over : {false, true}) {
    Net net;
    uint32_t x = net.input(64, true);
    for (uint32_t k = 0; k < 3; ++k) {
      auto *half = net.make<Custom>("half");
      half->spec.outputs = {{.name = "y", .bytes = floats(64)}};
      half->spec.input_flags = {uint32_t{CKPT_INPUT_BACKWARD_IGNORES} | (over ? uint32_t{CKPT_INPUT_GRAD_OVER_OUTPUT_0} : 0u)};
      half->spec.backward_scratch = 4096;
      half->run_forward = [](View &f) {
        if (f.needs_output(0))
          for (size_t i = 0; i < 64; ++i) f.fout(0)[i] = 0.5f * f.fin(0)[i];
      };
      half->run_backward = [](View &f) {
        bool add = false;
        float *dx = static_cast<float *>(f.input_grad(0, &add));
        for (size_t i = 0; i < 64; ++i) put(dx, i, 0.5f * f.fgrad(0)[i], add);
      };
      x = net.add(half, {x});
    }
    net.root(x, std::vector<float>(64, 1.0f));
    Options o;
    o.strategy = CKPT_STRATEGY_STORE_ALL;
    Session s(o);
    const Step got = s.step(net);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    height[over] = got.stats.peak_measured_bytes;
  }
  EXPECT_EQ(height[1] + 256, height[0]);
}

TEST(TapeGradients, RootThatOthersReadKeepsItsCallersGradient) {
  Net net;
  const uint32_t x = net.then<Linear>(net.input(16, true), "first", size_t{1}, size_t{16}, size_t{16});
  const uint32_t y = net.then<Relu>(net.then<Mlp>(x, "second", size_t{16}), "third", size_t{16}, false, true);
  net.root(net.then<Loss>(y, "loss", size_t{16}, false), {0.5f});
  net.root(x, std::vector<float>(16, 0.25f));
  net.root(y, std::vector<float>(16, -0.125f));
  check(net, "roots that others read");
  for (const NetRoot &r : net.roots)
    for (float g : r.grad) EXPECT_TRUE(g == 0.5f || g == 0.25f || g == -0.125f) << g;
}

TEST(TapeGradients, RootWithoutGradientThatOthersRead) {
  // The segment of x seeds itself where no gradient arrives; here one does.
  Net net;
  const uint32_t x = net.then<Scale>(net.input(8, true), "first", size_t{8}, 1u);
  net.root(x);
  net.root(net.then<Loss>(x, "loss", size_t{8}, true));
  check(net, "a root without gradient inside the net");
}

TEST(TapeGradients, SeveralOutputsOfWhichSomeHaveAGradient) {
  for (int which = 0; which < 3; ++which) {
    Net net;
    auto *split = net.make<Split>("split", size_t{16});
    const uint32_t y = net.add(split, {net.then<Scale>(net.input(16, true), "first", size_t{16}, 1u)});
    if (which != 1) net.root(net.then<Loss>(y, "loss of y", size_t{16}, true));
    if (which != 0) net.root(net.then<Loss>(y + 1, "loss of z", split->half(), true));
    check(net, which == 0 ? "y alone" : which == 1 ? "z alone" : "both");
  }
}

TEST(TapeGradients, SegmentsThatNoGradientReachesAreSkippedAndCounted) {
  Net net;
  const uint32_t in = net.input(16, true);
  const uint32_t x = net.then<Scale>(in, "used", size_t{16}, 1u);
  net.then<Mlp>(net.then<Mlp>(in, "aside", size_t{16}), "aside too", size_t{16});
  net.root(net.then<Loss>(x, "loss", size_t{16}, true));
  check(net, "a branch that no root depends on");
  Session s({});
  const Step got = s.step(net);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(got.stats.skipped_count, 2u);
  EXPECT_EQ(got.stats.backward_done, 2u);
}

TEST(TapeGradients, UnusedInputsGetZeroUnlessTheyAccumulate) {
  Net net;
  net.input(16, true);
  net.input(16, true, 4, true);
  net.root(net.then<Loss>(net.then<Scale>(net.input(16, true), "used", size_t{16}, 1u), "loss", size_t{16}, true));
  check(net, "unused inputs");
  EXPECT_EQ(net.inputs[0].grad, std::vector<float>(16, 0.0f));
  EXPECT_EQ(net.inputs[1].grad, std::vector<float>(16, 0.5f));
}

TEST(TapeGradients, AccumulatedInputUsedBySeveralSegments) {
  for (bool accumulate : {false, true}) {
    Net net;
    const uint32_t in = net.input(16, true, 3, accumulate);
    const uint32_t a = net.then<Scale>(in, "a", size_t{16}, 1u), b = net.then<Scale>(in, "b", size_t{16}, 2u);
    net.root(net.then<Loss>(net.add(net.make<Mul>("product", size_t{16}), {a, b}), "loss", size_t{16}, true));
    check(net, accumulate ? "adds to what was there" : "writes");
  }
}

TEST(TapeGradients, InputWhoseGradientIsNotWantedOrNotGiven) {
  Net net;
  auto *layer = net.make<Custom>("ignores its second input");
  layer->spec.outputs = {{.name = "y", .bytes = floats(4)}};
  layer->spec.input_flags = {0, CKPT_INPUT_NO_GRAD};
  layer->run_forward = [](View &f) {
    if (!f.needs_output(0)) return;
    for (size_t k = 0; k < 4; ++k) f.fout(0)[k] = f.fin(0)[k] * f.fin(1)[k];
  };
  layer->run_backward = [](View &f) {
    bool add = true;
    EXPECT_EQ(f.input_grad(1, &add), nullptr);
    EXPECT_FALSE(add);
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < 4; ++k) put(dx, k, f.fgrad(0)[k] * f.fin(1)[k], add);
  };
  const uint32_t a = net.input(4, true), b = net.input(4, true, 9);
  net.root(net.add(layer, {a, b}), {1, 2, 3, 4});
  check(net, "NO_GRAD");
  EXPECT_EQ(net.inputs[1].grad, std::vector<float>(4, 0.0f));
}

TEST(TapeGradients, GradientsOfAnotherSizeThanTheirValues) {
  // Two bytes a value, four a gradient, say: the sizes that the frame tells are the given ones.
  Session s({});
  struct Sizes { size_t output = 0, input = 0; } seen;
  ckpt_output out{};
  out.name = "y";
  out.bytes = 10;
  out.grad_bytes = 20;
  ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
  d.name = "half";
  d.outputs = &out;
  d.output_count = 1;
  d.input_count = 1;
  d.forward = [](void *, ckpt_frame *f) -> ckpt_status {
    ckpt_frame_output(f, 0);
    return CKPT_OK;
  };
  d.backward = [](void *user, ckpt_frame *f) -> ckpt_status {
    auto *sizes = static_cast<Sizes *>(user);
    sizes->output = ckpt_frame_bytes(f, CKPT_FRAME_OUTPUT_GRAD, 0);
    sizes->input = ckpt_frame_bytes(f, CKPT_FRAME_INPUT_GRAD, 0);
    ckpt_frame_input_grad(f, 0, nullptr);
    return CKPT_OK;
  };
  ckpt_segment *segment = nullptr;
  ASSERT_EQ(ckpt_segment_create(&d, &segment), CKPT_OK) << ckpt_last_error();
  char data[6] = {}, grad[12];
  ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
  in.data = data;
  in.bytes = sizeof data;
  in.grad = grad;
  in.grad_bytes = sizeof grad;
  ckpt_buffer x = 0, y = 0, z = 0;
  ASSERT_EQ(ckpt_tape_input(s.tape, &in, &x), CKPT_OK);
  ckpt_call c = CKPT_CALL_INIT;
  c.input_count = 1;
  c.inputs = &x;
  c.user = &seen;
  ASSERT_EQ(ckpt_segment_run(s.tape, segment, &c, &y), CKPT_OK) << ckpt_last_error();
  c.inputs = &y;
  ASSERT_EQ(ckpt_segment_run(s.tape, segment, &c, &z), CKPT_OK) << ckpt_last_error();
  const char root_grad[20] = {};
  const void *grads[] = {root_grad};
  ASSERT_EQ(ckpt_backward(s.tape, &z, grads, 1, 0), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(seen.output, 20u);
  EXPECT_EQ(seen.input, 12u);
  ckpt_segment_destroy(segment);
}

}  // namespace
