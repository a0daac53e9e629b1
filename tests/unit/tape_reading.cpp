// Boundaries that the user reads or lets go of; forward passes without a backward; known budgets around them.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

Net chain(uint32_t n, size_t count = 48) {
  Net net;
  uint32_t x = net.input(count, true);
  for (uint32_t k = 0; k < n; ++k) x = net.then<Mlp>(x, "mlp", count, k);
  net.root(net.then<Loss>(x, "loss", count, true));
  return net;
}

std::vector<float> value_of(Net &net, uint32_t v, uint64_t step) {
  PlainRun oracle(net, 42, step);
  oracle.forward();
  return {oracle.value(v), oracle.value(v) + oracle.bytes_of(v) / sizeof(float)};
}

TEST(TapeReading, AnyBoundaryBeforeBackwardAlsoDroppedOnes) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO})
    for (bool known : {false, true}) {
      SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + (known ? ", known" : ", unknown"));
      Net net = chain(7);
      Options o;
      o.strategy = strategy;
      Session s(o);
      if (known) { ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK); }
      for (uint64_t at = 0; at < 4; ++at) {
        const Result expected = plain(net, 42, at);
        net.zero_grads();
        ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK) << ckpt_last_error();
        ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
        // Another one each step, so that the plan does not know of it.
        for (uint32_t v : {static_cast<uint32_t>(2 + at), static_cast<uint32_t>(6 - at)}) {
          const void *data = nullptr;
          ASSERT_EQ(ckpt_tape_read(s.tape, s.buffers[v], &data), CKPT_OK) << ckpt_last_error();
          const std::vector<float> value = value_of(net, v, at);
          EXPECT_EQ(std::memcmp(data, value.data(), floats(value.size())), 0) << "value " << v << ", step " << at;
        }
        ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
        EXPECT_EQ(difference(collect(net), expected), "");
        EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
        EXPECT_EQ(s.log.violation, "");
      }
    }
}

TEST(TapeReading, WhatIsReadEachStepIsPlannedFor) {
  for (uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL}) {
    Net net = chain(6);
    Options o;
    o.strategy = strategy;
    Session s(o);
    ckpt_tape_stats stats{};
    for (uint64_t at = 0; at < 4; ++at) {
      const Result expected = plain(net, 42, at);
      net.zero_grads();
      ASSERT_EQ(ckpt_arena_reset_stats(s.arena), CKPT_OK);
      ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK) << ckpt_last_error();
      ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
      const void *data = nullptr;
      const uint64_t recomputes = s.log.recomputes;
      ASSERT_EQ(ckpt_tape_read(s.tape, s.buffers[3], &data), CKPT_OK) << ckpt_last_error();
      if (at > 0) { EXPECT_EQ(s.log.recomputes, recomputes) << "it was kept for the reader"; }
      ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(difference(collect(net), expected), "");
      stats = s.stats();
      if (at == 0) continue;
      EXPECT_EQ(stats.planned, 1u);
      EXPECT_EQ(stats.peak_predicted_bytes, stats.peak_measured_bytes);
      EXPECT_EQ(stats.arena_predicted_bytes, stats.arena_measured_bytes);
    }
    // A step that does not read it is none the worse.
    const Result expected = plain(net, 42, 4);
    const Step got = s.step(net, 1);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected), "");
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  }
}

TEST(TapeReading, ReadInTheMiddleOfTheForwardPass) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL})
    for (bool let_go : {false, true}) {
      Net net = chain(6);
      Options o;
      o.strategy = strategy;
      Session s(o);
      ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
      const Result expected = plain(net, 42, 0);
      net.zero_grads();
      ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
      ASSERT_EQ(s.forward(net, 4), CKPT_OK);
      const void *data = nullptr;
      ASSERT_EQ(ckpt_tape_read(s.tape, s.buffers[1], &data), CKPT_OK) << ckpt_last_error();
      const std::vector<float> value = value_of(net, 1, 0);
      EXPECT_EQ(std::memcmp(data, value.data(), floats(48)), 0);
      if (let_go) { EXPECT_EQ(ckpt_tape_release(s.tape, s.buffers[1]), CKPT_OK); }
      for (size_t k = 4; k < net.nodes.size(); ++k) ASSERT_EQ(s.run_node(net, net.nodes[k]), CKPT_OK) << ckpt_last_error();
      if (!let_go) { EXPECT_EQ(std::memcmp(data, value.data(), floats(48)), 0) << "held until backward"; }
      ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(difference(collect(net), expected), "");
      EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    }
}

TEST(TapeReading, InputsAndCallersMemory) {
  Net net = chain(2);
  Session s({});
  net.zero_grads();
  ASSERT_EQ(s.forward(net), CKPT_OK);
  const void *data = nullptr;
  ASSERT_EQ(ckpt_tape_read(s.tape, s.buffers[0], &data), CKPT_OK);
  EXPECT_EQ(data, net.inputs[0].data.data());
  ASSERT_EQ(ckpt_tape_read(s.tape, s.buffers[3], &data), CKPT_OK);
  EXPECT_EQ(data, &static_cast<Loss *>(net.layers[2].get())->value);
  ASSERT_EQ(s.backward(net), CKPT_OK);
  EXPECT_EQ(ckpt_tape_read(s.tape, s.buffers[0], &data), CKPT_ERROR_STALE);
  EXPECT_EQ(data, nullptr);
}

TEST(TapeReading, LossInTheArenaIsReadBetweenForwardAndBackward) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL}) {
    Net net;
    uint32_t x = net.input(16, true);
    for (uint32_t k = 0; k < 3; ++k) x = net.then<Mlp>(x, "mlp", size_t{16}, k);
    const uint32_t loss = net.then<Loss>(x, "loss", size_t{16}, false);
    net.root(loss);
    Options o;
    o.strategy = strategy;
    Session s(o);
    for (uint64_t at = 0; at < 3; ++at) {
      net.zero_grads();
      ASSERT_EQ(s.forward(net), CKPT_OK);
      const void *data = nullptr;
      const uint64_t again = s.log.recomputes;
      ASSERT_EQ(ckpt_tape_read(s.tape, s.buffers[loss], &data), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(s.log.recomputes, again) << "what nobody reads in the recording is the user's to read";
      EXPECT_EQ(*static_cast<const float *>(data), value_of(net, loss, at)[0]);
      ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(s.stats().planned, at > 0 ? 1u : 0u);
    }
  }
}

TEST(TapeReading, ReleasedBoundariesAreStale) {
  Net net = chain(4);
  Session s({});
  net.zero_grads();
  ASSERT_EQ(s.forward(net, 3), CKPT_OK);
  ASSERT_EQ(ckpt_tape_release(s.tape, s.buffers[1]), CKPT_OK);
  const void *data = nullptr;
  EXPECT_EQ(ckpt_tape_read(s.tape, s.buffers[1], &data), CKPT_ERROR_STALE);
  const std::vector<ckpt_buffer> in{s.buffers[1]};
  ckpt_call c = s.call(net.nodes[3].layer, in);
  ckpt_buffer out = 0;
  EXPECT_EQ(ckpt_segment_run(s.tape, s.segment(net.nodes[3].layer), &c, &out), CKPT_ERROR_STALE);
  EXPECT_NE(std::string(ckpt_last_error()).find("inputs[0]"), std::string::npos) << ckpt_last_error();
  EXPECT_NE(std::string(ckpt_last_error()).find("'mlp'"), std::string::npos) << ckpt_last_error();
  // That call was refused before anything happened: the recording goes on.
  for (size_t k = 3; k < net.nodes.size(); ++k) ASSERT_EQ(s.run_node(net, net.nodes[k]), CKPT_OK) << ckpt_last_error();
  const Result expected = plain(net, 42, 0);
  net.zero_grads();
  ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(difference(collect(net), expected), "") << "a released boundary is still there for its readers' backwards";
}

TEST(TapeReading, WithoutBackwardOnlyWhatIsStillReadStays) {
  Net net = chain(8, 256);
  Session s({});
  const std::vector<float> loss = value_of(net, 9, 0);
  ASSERT_EQ(ckpt_tape_begin(s.tape, 1, CKPT_TAPE_NO_BACKWARD), CKPT_OK);
  ASSERT_EQ(ckpt_arena_reset_stats(s.arena), CKPT_OK);
  s.buffers.clear();
  ckpt_input_desc d = CKPT_INPUT_DESC_INIT;
  d.data = net.inputs[0].data.data();
  d.bytes = floats(256);
  s.buffers.push_back(0);
  ASSERT_EQ(ckpt_tape_input(s.tape, &d, &s.buffers.back()), CKPT_OK);
  for (const NetNode &n : net.nodes) {
    ASSERT_EQ(s.run_node(net, n), CKPT_OK) << ckpt_last_error();
    if (n.inputs[0] > 0) { ASSERT_EQ(ckpt_tape_release(s.tape, s.buffers[n.inputs[0]]), CKPT_OK); }
  }
  // An mlp's two slots, its input and its output: four times a kibibyte, and no more for eight of them.
  EXPECT_EQ(s.arena_stats().peak_in_use_bytes, 4096u);
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u) << "the loss is in the caller's memory";
  EXPECT_EQ(static_cast<Loss *>(net.layers[8].get())->value, loss[0]);
  const void *data = nullptr;
  EXPECT_EQ(ckpt_tape_read(s.tape, s.buffers[3], &data), CKPT_ERROR_STALE);
  EXPECT_EQ(ckpt_backward(s.tape, &s.buffers.back(), nullptr, 1, 0), CKPT_ERROR_STATE);
  EXPECT_NE(std::string(ckpt_last_error()).find("NO_BACKWARD"), std::string::npos) << ckpt_last_error();
  EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  EXPECT_EQ(s.stats().step, 0u) << "the step moves on with a backward only";
}

TEST(TapeReading, WithoutBackwardKeepSlotsGoToo) {
  Net net;
  uint32_t x = net.input(16, false);
  for (uint32_t k = 0; k < 3; ++k) x = net.then<Router>(x, "router", size_t{16});
  Session s({});
  ASSERT_EQ(ckpt_tape_begin(s.tape, 0, CKPT_TAPE_NO_BACKWARD), CKPT_OK);
  ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(s.arena_stats().block_count, 3u) << "three boundaries that nobody has released, and no choice of a router";
  const void *data = nullptr;
  EXPECT_EQ(ckpt_tape_read(s.tape, s.buffers[3], &data), CKPT_OK);
  EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

TEST(TapeReading, WithoutBackwardAndWithinABudgetThatStoresNothing) {
  Net net = chain(6, 256);
  Options o;
  o.budget = 4096;
  Session s(o);
  ASSERT_EQ(ckpt_tape_begin(s.tape, 0, CKPT_TAPE_NO_BACKWARD), CKPT_OK);
  s.buffers.clear();
  ckpt_input_desc d = CKPT_INPUT_DESC_INIT;
  d.data = net.inputs[0].data.data();
  d.bytes = floats(256);
  s.buffers.push_back(0);
  ASSERT_EQ(ckpt_tape_input(s.tape, &d, &s.buffers.back()), CKPT_OK);
  for (const NetNode &n : net.nodes) {
    ASSERT_EQ(s.run_node(net, n), CKPT_OK) << ckpt_last_error();
    if (n.inputs[0] > 0) { ASSERT_EQ(ckpt_tape_release(s.tape, s.buffers[n.inputs[0]]), CKPT_OK); }
  }
  EXPECT_LE(s.arena_stats().height_bytes, 4096u);
}

TEST(TapeReading, AReadThatDoesNotFitIsRefusedByName) {
  // Within the smallest budget there is no room to make the largest boundary again beside what the plan keeps.
  for (uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO}) {
    Net net;
    uint32_t x = net.input(64, true);
    for (uint32_t k = 0; k < 24; ++k) {
      if (k == 2) x = net.then<Linear>(x, "wide", size_t{1}, size_t{64}, size_t{1024});
      else if (k == 3) x = net.then<Linear>(x, "narrow", size_t{1}, size_t{1024}, size_t{64});
      else x = net.then<Router>(net.then<Mlp>(x, "mlp", size_t{64}, k), "router", size_t{64});
    }
    net.root(net.then<Loss>(x, "loss", size_t{64}, true));
    Options o;
    o.strategy = strategy;
    o.budget = o.alignment;
    size_t minimum = 0;
    {
      Session ask(o);
      minimum = ask.step(net, 1, CKPT_TAPE_DRY).stats.minimum_budget_bytes;
    }
    o.budget = minimum;
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
    uint32_t refused = 0;
    for (uint32_t v = 1; v < net.value_count(); ++v) {
      net.zero_grads();
      ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
      ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
      // All of them, beginning with this one: sooner or later one does not fit.
      ckpt_status status = CKPT_OK;
      for (uint32_t u = v; !status && u < net.value_count(); ++u) {
        const void *data = nullptr;
        status = ckpt_tape_read(s.tape, s.buffers[u], &data);
      }
      if (status) {
        ++refused;
        EXPECT_EQ(status, CKPT_ERROR_BUDGET);
        EXPECT_NE(std::string(ckpt_last_error()).find("segment '"), std::string::npos) << ckpt_last_error();
        EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
      } else {
        status = s.backward(net);
        if (status) { EXPECT_EQ(status, CKPT_ERROR_BUDGET) << ckpt_last_error(); }
      }
      EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
      EXPECT_LE(s.arena_stats().height_bytes, minimum);
    }
    if (strategy == CKPT_STRATEGY_FULL) { EXPECT_GT(refused, 0u); }
  }
}

TEST(TapeReading, ReleasesTellAPlanThatNobodyReadsTheEnd) {
  // An output that no segment reads stays for the user until backward, unless he has said that he will not.
  size_t held[2];
  for (bool let_go : {false, true}) {
    Net net;
    const uint32_t x = net.then<Scale>(net.input(64, true), "scale", size_t{64}, 1u);
    const uint32_t aside = net.then<Scale>(x, "aside", size_t{64}, 2u);
    net.root(net.then<Loss>(x, "loss", size_t{64}, true));
    Session s({});
    for (int k = 0; k < 3; ++k) {
      net.zero_grads();
      ASSERT_EQ(s.forward(net), CKPT_OK);
      if (let_go) { ASSERT_EQ(ckpt_tape_release(s.tape, s.buffers[aside]), CKPT_OK); }
      ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
    }
    EXPECT_EQ(s.stats().planned, 1u);
    held[let_go] = s.stats().held_bytes;
  }
  EXPECT_EQ(held[1] + 256, held[0]);
}

}  // namespace
