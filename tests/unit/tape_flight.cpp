// Recordings in flight (pipelines), detached and run later; retained recordings that are run again.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

// `micro` micro-batches of one net, each with inputs, gradients and losses of its own; layers (weights) are shared.
struct Pipeline {
  std::vector<Net> nets;
  explicit Pipeline(uint32_t micro, uint32_t depth = 5) {
    for (uint32_t m = 0; m < micro; ++m) {
      Net net;
      uint32_t x = net.input(48, true, 3 + m);
      for (uint32_t k = 0; k < depth; ++k) x = k % 2 == 0 ? net.then<Mlp>(x, "mlp", size_t{48}, k) : net.then<Dropout>(x, "dropout", size_t{48}, k % 4 == 1);
      net.root(net.then<Loss>(x, "loss", size_t{48}, true));
      nets.push_back(std::move(net));
    }
  }
};

std::vector<ckpt_buffer> roots_of(const Net &net, const std::vector<ckpt_buffer> &buffers) {
  std::vector<ckpt_buffer> r;
  for (const NetRoot &root : net.roots) r.push_back(buffers[root.value]);
  return r;
}

struct Flying {
  ckpt_recording *recording = nullptr;
  std::vector<ckpt_buffer> roots;
};

// The forward pass of one micro-batch, taken off the tape.
Flying launch(Session &s, Net &net, uint64_t key) {
  Flying f;
  if (key != 0) { EXPECT_EQ(ckpt_tape_begin(s.tape, key, 0), CKPT_OK) << ckpt_last_error(); }
  EXPECT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
  f.roots = roots_of(net, s.buffers);
  EXPECT_EQ(ckpt_tape_detach(s.tape, &f.recording), CKPT_OK) << ckpt_last_error();
  return f;
}
ckpt_status land(Flying &f, uint32_t flags = 0) {
  const ckpt_status status = ckpt_recording_backward(f.recording, f.roots.data(), nullptr, static_cast<uint32_t>(f.roots.size()), flags);
  ckpt_recording_destroy(f.recording);
  return status;
}

// 1F1B with `depth` recordings in flight over all micro-batches; gradients equal those of each run by itself.
void one_f_one_b(Session &s, Pipeline &p, uint32_t depth, uint64_t key, uint64_t first_step) {
  std::vector<Result> expected;
  for (size_t m = 0; m < p.nets.size(); ++m) expected.push_back(plain(p.nets[m], s.options.seed, first_step + m));
  for (Net &net : p.nets) net.zero_grads();
  std::deque<std::pair<size_t, Flying>> flying;
  size_t next = 0;
  while (next < p.nets.size() || !flying.empty()) {
    if (next < p.nets.size() && flying.size() < depth) {
      flying.emplace_back(next, launch(s, p.nets[next], key));
      ++next;
      continue;
    }
    EXPECT_EQ(land(flying.front().second), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(p.nets[flying.front().first]), expected[flying.front().first]), "") << "micro-batch " << flying.front().first;
    flying.pop_front();
  }
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
  EXPECT_EQ(s.log.violation, "");
}

TEST(TapeFlight, OneForwardOneBackwardKeepsThePredictedBound) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO})
    for (uint32_t depth : {1u, 2u, 3u, 4u}) {
      SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + ", " + std::to_string(depth) + " in flight");
      Pipeline p(8);
      Options o;
      o.strategy = strategy;
      o.in_flight = depth;
      // The smallest budget for so many in flight.
      o.budget = o.alignment;
      size_t minimum = 0;
      {
        Session ask(o);
        const Step dry = ask.step(p.nets[0], 1, CKPT_TAPE_DRY);
        ASSERT_EQ(dry.status, CKPT_ERROR_BUDGET) << dry.text;
        minimum = dry.stats.minimum_budget_bytes;
      }
      o.budget = minimum;
      Session s(o);
      const Step dry = s.step(p.nets[0], 1, CKPT_TAPE_DRY);
      ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
      EXPECT_LE(dry.stats.arena_predicted_bytes, minimum);
      EXPECT_EQ(ckpt_arena_reset_stats(s.arena), CKPT_OK);
      one_f_one_b(s, p, depth, 1, 0);
      EXPECT_LE(s.arena_stats().height_bytes, minimum);
      EXPECT_EQ(s.stats().step, 8u);
    }
}

TEST(TapeFlight, UnknownRecordingsInFlight) {
  for (uint32_t depth : {2u, 4u}) {
    Pipeline p(6);
    Session s({});
    one_f_one_b(s, p, depth, 0, 0);
    one_f_one_b(s, p, depth, 0, 6);
  }
}

TEST(TapeFlight, MoreInFlightThanPlannedStillHoldTheBudget) {
  Pipeline p(6);
  Options o;
  o.in_flight = 1;
  o.budget = o.alignment;
  size_t minimum = 0;
  {
    Session ask(o);
    minimum = ask.step(p.nets[0], 1, CKPT_TAPE_DRY).stats.minimum_budget_bytes;
  }
  o.budget = minimum;
  Session s(o);
  ASSERT_EQ(s.step(p.nets[0], 1, CKPT_TAPE_DRY).status, CKPT_OK);
  for (Net &net : p.nets) net.zero_grads();
  const Result expected = plain(p.nets[0], o.seed, 0);
  p.nets[0].zero_grads();
  Flying first = launch(s, p.nets[0], 1);
  // The second finds the memory taken: it fails with BUDGET, or makes do; the first is none the worse.
  ckpt_status status = ckpt_tape_begin(s.tape, 1, 0);
  if (!status) status = s.forward(p.nets[1]);
  if (status) { EXPECT_EQ(status, CKPT_ERROR_BUDGET) << ckpt_last_error(); }
  EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  EXPECT_EQ(land(first), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(difference(collect(p.nets[0]), expected), "");
  EXPECT_LE(s.arena_stats().height_bytes, minimum);
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

TEST(TapeFlight, DetachedRecordingsRunInAnyOrderAndAreDestroyedUnrun) {
  Pipeline p(4);
  Session s({});
  std::vector<Result> expected;
  for (size_t m = 0; m < 4; ++m) expected.push_back(plain(p.nets[m], s.options.seed, m));
  for (Net &net : p.nets) net.zero_grads();
  std::vector<Flying> f;
  for (Net &net : p.nets) f.push_back(launch(s, net, 0));
  EXPECT_EQ(s.stats().step, 4u) << "the step moves on when a recording is detached";
  for (size_t m : {2u, 0u}) {
    EXPECT_EQ(land(f[m]), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(p.nets[m]), expected[m]), "");
  }
  ckpt_recording_destroy(f[1].recording);
  EXPECT_EQ(land(f[3]), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(difference(collect(p.nets[3]), expected[3]), "");
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
  EXPECT_EQ(s.stats().step, 4u) << "and not again with its backward";
}

TEST(TapeFlight, ADetachedRecordingIsRunOnce) {
  Pipeline p(1);
  Session s({});
  p.nets[0].zero_grads();
  Flying f = launch(s, p.nets[0], 0);
  EXPECT_EQ(ckpt_recording_backward(f.recording, f.roots.data(), nullptr, 1, 0), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(ckpt_recording_backward(f.recording, f.roots.data(), nullptr, 1, 0), CKPT_ERROR_STATE);
  const void *data = nullptr;
  EXPECT_EQ(ckpt_recording_read(f.recording, f.roots[0], &data), CKPT_ERROR_STALE);
  ckpt_recording_destroy(f.recording);
  ckpt_recording_destroy(nullptr);
  EXPECT_EQ(ckpt_recording_backward(nullptr, f.roots.data(), nullptr, 1, 0), CKPT_ERROR_INVALID_ARGUMENT);
}

TEST(TapeFlight, BoundariesOfADetachedRecordingCanBeRead) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL}) {
    Pipeline p(1);
    Net &net = p.nets[0];
    PlainRun oracle(net, 42, 0);
    oracle.forward();
    const std::vector<float> value(oracle.value(3), oracle.value(3) + 48);
    Options o;
    o.strategy = strategy;
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    const Result expected = plain(net, 42, 0);
    net.zero_grads();
    ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
    ASSERT_EQ(s.forward(net), CKPT_OK);
    Flying f;
    f.roots = roots_of(net, s.buffers);
    ASSERT_EQ(ckpt_tape_detach(s.tape, &f.recording), CKPT_OK);
    const void *data = nullptr;
    ASSERT_EQ(ckpt_recording_read(f.recording, s.buffers[3], &data), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(std::memcmp(data, value.data(), floats(48)), 0);
    // Its buffers are not the tape's any more.
    EXPECT_EQ(ckpt_tape_read(s.tape, s.buffers[3], &data), CKPT_ERROR_STALE);
    EXPECT_EQ(land(f), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(net), expected), "");
  }
}

TEST(TapeFlight, DetachRefusals) {
  Session s({});
  ckpt_recording *r = nullptr;
  EXPECT_EQ(ckpt_tape_detach(s.tape, &r), CKPT_ERROR_STATE);
  EXPECT_EQ(r, nullptr);
  Pipeline p(1);
  for (uint32_t flags : {CKPT_TAPE_DRY, CKPT_TAPE_NO_BACKWARD}) {
    ASSERT_EQ(ckpt_tape_begin(s.tape, 0, flags), CKPT_OK);
    ASSERT_EQ(s.forward(p.nets[0]), CKPT_OK);
    EXPECT_EQ(ckpt_tape_detach(s.tape, &r), CKPT_ERROR_STATE);
    ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  }
}

TEST(TapeFlight, TapeDestroyedWhileRecordingsFly) {
  Pipeline p(2);
  const Result expected = plain(p.nets[0], 42, 0);
  p.nets[0].zero_grads();
  auto s = std::make_unique<Session>(Options{});
  Flying a = launch(*s, p.nets[0], 0), b = launch(*s, p.nets[1], 0);
  ckpt_tape_destroy(std::exchange(s->tape, nullptr));
  s->forget_segments();
  EXPECT_EQ(land(a), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(difference(collect(p.nets[0]), expected), "");
  ckpt_recording_destroy(b.recording);
  EXPECT_EQ(s->arena_stats().in_use_bytes, 0u);
}

TEST(TapeFlight, RetainedTwiceGivesEqualGradients) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO})
    for (bool known : {false, true}) {
      SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + (known ? ", known" : ", unknown"));
      Pipeline p(1, 7);
      Net &net = p.nets[0];
      Options o;
      o.strategy = strategy;
      Session s(o);
      if (known) { ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK); }
      const Result expected = plain(net, 42, 0), next = plain(net, 42, 1);
      ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
      net.zero_grads();
      ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
      for (int time = 0; time < 3; ++time) {
        net.zero_grads();
        ASSERT_EQ(s.backward(net, CKPT_BACKWARD_RETAIN), CKPT_OK) << ckpt_last_error();
        EXPECT_EQ(difference(collect(net), expected), "") << "time " << time;
      }
      net.zero_grads();
      ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(difference(collect(net), expected), "");
      EXPECT_EQ(s.stats().step, 1u) << "one recording, one step";
      EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
      EXPECT_EQ(s.backward(net), CKPT_ERROR_STATE);
      const Step again = s.step(net, 1);
      ASSERT_EQ(again.status, CKPT_OK) << again.text;
      EXPECT_EQ(difference(again.result, next), "");
    }
}

TEST(TapeFlight, RetainedWithOtherRootsEachTime) {
  Net net;
  uint32_t x = net.input(16, true);
  for (uint32_t k = 0; k < 3; ++k) x = net.then<Mlp>(x, "mlp", size_t{16}, k);
  const uint32_t a = net.then<Loss>(x, "a", size_t{16}, true), b = net.then<Loss>(net.then<Mlp>(x, "mlp", size_t{16}, 9u), "b", size_t{16}, true);
  Session s({});
  net.zero_grads();
  ASSERT_EQ(s.forward(net), CKPT_OK);
  for (uint32_t root : {a, b, a}) {
    net.roots = {{root, {}}};
    const Result expected = plain(net, 42, 0);
    net.zero_grads();
    ASSERT_EQ(s.backward(net, CKPT_BACKWARD_RETAIN), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(net), expected), "");
  }
  ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

TEST(TapeFlight, RetainingWhatBackwardConsumes) {
  // The slot is overwritten by its own backward, so it is made again for the next one.
  Net net;
  uint32_t x = net.input(16, true);
  for (uint32_t k = 0; k < 3; ++k) x = net.then<Scratchy>(x, "scratchy", size_t{16}, size_t{2});
  net.root(net.then<Loss>(x, "loss", size_t{16}, true));
  const Result expected = plain(net, 42, 0);
  Session s({});
  net.zero_grads();
  ASSERT_EQ(s.forward(net), CKPT_OK);
  for (int time = 0; time < 3; ++time) {
    net.zero_grads();
    ASSERT_EQ(s.backward(net, CKPT_BACKWARD_RETAIN), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(net), expected), "") << "time " << time;
  }
}

TEST(TapeFlight, TwoTapesOnOneArena) {
  Pipeline p(2);
  Session a({});
  Options o;
  o.strategy = CKPT_STRATEGY_FULL;
  Session b(o, a.arena);
  for (uint64_t at = 0; at < 3; ++at) {
    const Result first = plain(p.nets[0], 42, at), second = plain(p.nets[1], 42, at);
    for (Net &net : p.nets) net.zero_grads();
    // Interleaved: b's whole step within a's.
    ASSERT_EQ(a.forward(p.nets[0]), CKPT_OK) << ckpt_last_error();
    const Step inner = b.step(p.nets[1], 0, 0, false);
    ASSERT_EQ(inner.status, CKPT_OK) << inner.text;
    EXPECT_EQ(difference(inner.result, second), "");
    if (at > 0) {
      EXPECT_EQ(inner.stats.planned, 1u);
      EXPECT_EQ(inner.stats.peak_predicted_bytes, inner.stats.peak_measured_bytes) << "beside what the other tape holds";
      EXPECT_EQ(inner.stats.arena_predicted_bytes, inner.stats.arena_measured_bytes);
    }
    ASSERT_EQ(a.backward(p.nets[0]), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(p.nets[0]), first), "");
    EXPECT_EQ(a.arena_stats().in_use_bytes, 0u);
  }
}

TEST(TapeFlight, UsersBlocksInTheArenaCount) {
  Pipeline p(1);
  Session s({});
  const Step alone = s.step(p.nets[0], 0, 0, false);
  ASSERT_EQ(alone.status, CKPT_OK);
  void *mine = ckpt_arena_alloc(s.arena, 10000, 0);
  ASSERT_NE(mine, nullptr);
  const Step beside = s.step(p.nets[0], 0, 0, false);
  ASSERT_EQ(beside.status, CKPT_OK) << beside.text;
  EXPECT_EQ(beside.stats.planned, 1u);
  EXPECT_GE(beside.stats.peak_measured_bytes, 10000u);
  EXPECT_EQ(beside.stats.peak_predicted_bytes, beside.stats.peak_measured_bytes);
  EXPECT_EQ(beside.stats.arena_predicted_bytes, beside.stats.arena_measured_bytes);
  EXPECT_EQ(ckpt_arena_free(s.arena, mine), CKPT_OK);
}

}  // namespace
