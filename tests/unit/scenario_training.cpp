// Scenarios of training, each from a fault that users of other libraries met: random draws that were not replayed, weights
// that got no gradient, statistics counted twice, a loop body that lost its index, a budget that forgot the backward's scratch.
#include <gtest/gtest.h>

#include "../support/ops_net.h"
#include "../support/slow.h"

namespace {

using namespace ops;

struct Choice {
  uint32_t strategy, k;
};
const Choice kChoices[] = {{CKPT_STRATEGY_STORE_ALL, 0}, {CKPT_STRATEGY_EVERY_SEGMENT, 0}, {CKPT_STRATEGY_SQRT, 0}, {CKPT_STRATEGY_UNIFORM, 3},
                           {CKPT_STRATEGY_BLOCK, 5},     {CKPT_STRATEGY_FULL, 0},          {CKPT_STRATEGY_AUTO, 0}};

size_t minimum_of(Net &net) {
  Session s({});
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  EXPECT_EQ(dry.status, CKPT_OK) << dry.text;
  return dry.stats.minimum_budget_bytes;
}

// `steps` steps, dry first, each against the plain executor.
void expect_equal_steps(Net &net, const Options &o, uint64_t steps) {
  Session s(o);
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
  const HostState start(net);
  for (uint64_t t = 0; t < steps; ++t) {
    SCOPED_TRACE("step " + std::to_string(t));
    const HostState before(net);
    const Result expected = plain(net, o.seed, t);
    const HostState after(net);
    before.restore(net);
    const Step got = s.step(net, 1);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected), "");
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    EXPECT_EQ(got.stats.step, t + 1);
    after.restore(net);
  }
  start.restore(net);
}

void expect_equal_under_all(Net &net, uint64_t steps) {
  for (const Choice &c : kChoices) {
    SCOPED_TRACE(ckpt_strategy_name(c.strategy));
    Options o;
    o.strategy = c.strategy;
    o.k = c.k;
    expect_equal_steps(net, o, steps);
  }
}

// 1. 24 x [linear 64, dropout 0.1, relu], batch 8: loss, weight gradients and masks, to step 5.
TEST(Scenario1, DropoutChain) {
  constexpr size_t kBatch = 8, kWidth = 64;
  Net net;
  uint32_t x = net.input(kBatch * kWidth, true);
  for (uint32_t b = 0; b < 24 / plan_test::kSlow; ++b) {
    const std::string n = std::to_string(b);
    x = net.then<Linear>(x, "linear" + n, kBatch, kWidth, kWidth, b + 1);
    x = net.then<Dropout>(x, "dropout" + n, kBatch * kWidth, false, 0.1);
    x = net.then<Relu>(x, "relu" + n, kBatch * kWidth);
  }
  net.root(net.then<Loss>(x, "loss", kBatch * kWidth, true));
  expect_equal_under_all(net, 6);
  const size_t minimum = minimum_of(net);
  Session all({});
  const size_t ample = all.step(net, 1, CKPT_TAPE_DRY).stats.arena_predicted_bytes;
  for (size_t budget : {ample, ample / 2, minimum}) {
    SCOPED_TRACE(budget);
    Options o;
    o.budget = std::max(budget, minimum);
    expect_equal_steps(net, o, 2);
  }
}

// 2. Weights that are no input of their segment, one of them used by segments 2 and 7: its gradient is the sum.
TEST(Scenario2, CapturedAndSharedWeights) {
  Net net;
  uint32_t x = net.input(40, false);  // no input wants a gradient: the weights still get theirs
  Scale *shared = net.make<Scale>("shared", size_t{40}, 9u);
  for (uint32_t b = 0; b < 10; ++b) {
    if (b == 2 || b == 7) x = net.add(shared, {x});
    else x = net.then<Mlp>(x, "mlp" + std::to_string(b), size_t{40}, b + 1);
  }
  net.root(net.then<Loss>(x, "loss", size_t{40}, true));
  expect_equal_under_all(net, 2);
  EXPECT_NE(shared->weight_grad[0], 0.0f);
}

// 3. BatchNorm: gradients, running statistics and the counter of calls after 3 steps, by is_recompute and by saved state.
TEST(Scenario3, BatchNorm) {
  for (const bool by_state : {false, true}) {
    SCOPED_TRACE(by_state);
    Net net;
    uint32_t x = net.input(8 * 6, true);
    for (uint32_t b = 0; b < 6; ++b) {
      x = net.then<Linear>(x, "linear" + std::to_string(b), size_t{8}, size_t{6}, size_t{6}, b + 1);
      x = net.then<BatchNorm>(x, "norm" + std::to_string(b), size_t{8}, size_t{6}, by_state, b + 3);
    }
    net.root(net.then<Loss>(x, "loss", size_t{48}, true));
    expect_equal_under_all(net, 3);
  }
}

// 4. 20 steps x = a x + 0.1, loss += t sum(x): d loss / d a equals the closed form.
TEST(Scenario4, LoopIndex) {
  constexpr int kSteps = 20;
  double a = 0.9;
  for (const Choice &c : kChoices) {
    SCOPED_TRACE(ckpt_strategy_name(c.strategy));
    Net net;
    double grad = 0, loss = 0;
    Custom *body = net.make<Custom>("body");
    body->spec.outputs = {{.name = "x", .bytes = sizeof(double)}, {.name = "loss", .bytes = sizeof(double)}};
    body->spec.input_flags = {0, CKPT_INPUT_BACKWARD_IGNORES};
    body->run_forward = [&](View &f) {
      const auto *x = static_cast<const double *>(f.input(0)), *before = static_cast<const double *>(f.input(1));
      if (f.needs_output(0)) *static_cast<double *>(f.output(0)) = a * *x + 0.1;
      if (f.needs_output(1)) *static_cast<double *>(f.output(1)) = *before + static_cast<double>(f.index() + 1) * (a * *x + 0.1);
    };
    body->run_backward = [&](View &f) {
      const auto *x = static_cast<const double *>(f.input(0));
      const auto *gx = static_cast<const double *>(f.output_grad(0)), *gl = static_cast<const double *>(f.output_grad(1));
      const double g = (gx != nullptr ? *gx : 0) + (gl != nullptr ? *gl : 0) * static_cast<double>(f.index() + 1);
      grad += g * *x;
      bool add = false;
      if (auto *d = static_cast<double *>(f.input_grad(0, &add))) *d = (add ? *d : 0) + g * a;
      if (auto *d = static_cast<double *>(f.input_grad(1, &add))) *d = (add ? *d : 0) + (gl != nullptr ? *gl : 0);
    };
    net.inputs.resize(2);
    net.inputs[0].data = {1.0f, 0.0f};  // 8 bytes each: read as doubles below
    net.inputs[1].data = {0.0f, 0.0f};
    const double start = 0.5, zero = 0;
    std::memcpy(net.inputs[0].data.data(), &start, sizeof start);
    std::memcpy(net.inputs[1].data.data(), &zero, sizeof zero);
    Options o;
    o.strategy = c.strategy;
    o.k = c.k;
    Session s(o);
    for (int pass = 0; pass < 2; ++pass) {
      grad = 0;
      s.buffers.clear();
      ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
      ckpt_buffer x[2] = {s.buffers[0], s.buffers[1]};
      for (int t = 0; t < kSteps; ++t) {
        const std::vector<ckpt_buffer> inputs = {x[0], x[1]};
        ckpt_call call = s.call(body, inputs);
        ASSERT_EQ(ckpt_segment_run(s.tape, s.segment(body), &call, x), CKPT_OK) << ckpt_last_error();
      }
      const void *data = nullptr;
      ASSERT_EQ(ckpt_tape_read(s.tape, x[1], &data), CKPT_OK);
      loss = *static_cast<const double *>(data);
      const double one = 1;
      const void *grads[] = {&one};
      ASSERT_EQ(ckpt_backward(s.tape, &x[1], grads, 1, 0), CKPT_OK) << ckpt_last_error();
    }
    // x_t = a x_{t-1} + 0.1 and dx_t/da = x_{t-1} + a dx_{t-1}/da, summed with weights t.
    double x = start, dx = 0, want_loss = 0, want = 0;
    for (int t = 1; t <= kSteps; ++t) {
      dx = x + a * dx;
      x = a * x + 0.1;
      want += t * dx;
      want_loss += t * x;
    }
    EXPECT_NEAR(loss, want_loss, 1e-9 * want_loss);
    EXPECT_NEAR(grad, want, 1e-9 * want);
  }
}

Net scratchy_blocks(uint32_t count) {
  Net net;
  uint32_t x = net.input(256, true);
  for (uint32_t b = 0; b < count; ++b) {
    if (b == count / 2) x = net.then<Scratchy>(x, "scratchy", size_t{256}, size_t{8});
    else x = net.then<Mlp>(x, "mlp" + std::to_string(b), size_t{256}, b + 1);
  }
  net.root(net.then<Loss>(x, "loss", size_t{256}, true));
  return net;
}

// 5. One backward needs scratch of 8 activations: 20 budgets, high water within each, the minimum exact.
TEST(Scenario5, PeakNotSavedSet) {
  Net net = scratchy_blocks(32);
  const size_t minimum = minimum_of(net);
  Session all({});
  const size_t ample = all.step(net, 1, CKPT_TAPE_DRY).stats.arena_predicted_bytes;
  ASSERT_LT(minimum, ample);
  const Result expected = plain(net, 42, 0);
  for (int k = 0; k < 20; ++k) {
    Options o;
    o.budget = minimum + (ample - minimum) * static_cast<size_t>(k) / 19;
    SCOPED_TRACE(o.budget);
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    const Step got = s.step(net, 1);  // step() checks the height against the budget
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected), "");
  }
  Options less;
  less.budget = minimum - 1;
  Session s(less);
  const Step refused = s.step(net, 1, CKPT_TAPE_DRY);
  EXPECT_EQ(refused.status, CKPT_ERROR_BUDGET);
  EXPECT_EQ(refused.stats.minimum_budget_bytes, minimum);
  EXPECT_NE(refused.text.find(std::to_string(minimum)), std::string::npos) << refused.text;
  const Step real = s.step(net, 1);
  EXPECT_EQ(real.status, CKPT_ERROR_BUDGET);
  EXPECT_EQ(s.log.callbacks(), 0u) << "refused before anything runs";
}

// 6. Ten times the need: nothing is recomputed. The need less one byte: the cheapest sufficient recompute.
TEST(Scenario6, AmpleMemory) {
  Net net = scratchy_blocks(16);
  Session all({});
  const size_t need = all.step(net, 1, CKPT_TAPE_DRY).stats.arena_predicted_bytes;
  for (const size_t budget : {10 * need, need}) {
    Options o;
    o.budget = budget;
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    EXPECT_EQ(s.step(net, 1).stats.recompute_count, 0u);
  }
  Options o;
  o.budget = need - 1;
  Session s(o);
  ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
  const Step got = s.step(net, 1);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_GE(got.stats.recompute_count, 1u);
  EXPECT_LE(got.stats.recompute_count, 2u) << "not a whole chain's";
}

}  // namespace
