// The three checks find what they are for, and cry over nothing else; guards and poison around the tape's own blocks.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

constexpr uint32_t kAll = CKPT_CHECK_DETERMINISM | CKPT_CHECK_RECOMPUTE | CKPT_CHECK_INPUTS;

// One of each kind of layer: nothing is wrong with them.
Net everything() {
  Net net;
  uint32_t x = net.input(48, true);
  const uint32_t first = x = net.then<Mlp>(x, "mlp", size_t{48});
  x = net.then<Norm>(x, "norm", size_t{2}, size_t{24});
  x = net.then<Twin>(x, "twin", size_t{48});
  x = net.then<Dropout>(x, "dropout", size_t{48}, true);
  x = net.then<Dropout>(x, "dropout too", size_t{48}, false);
  x = net.then<Router>(x, "router", size_t{48});
  x = net.then<BatchNorm>(x, "batch norm", size_t{2}, size_t{24}, false);
  x = net.then<BatchNorm>(x, "batch norm too", size_t{2}, size_t{24}, true);
  x = net.then<HostDropout>(x, "host dropout", size_t{48});
  x = net.then<Scratchy>(x, "scratchy", size_t{48}, size_t{3});
  x = net.then<Relu>(net.then<Scale>(x, "scale", size_t{48}, 1u), "relu", size_t{48}, true);
  x = net.add(net.make<Add>("add", size_t{48}), {x, first});
  net.root(net.then<Loss>(x, "loss", size_t{48}, true));
  return net;
}

TEST(TapeChecks, NothingIsFoundWhereNothingIsWrong) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL})
    for (uint32_t checks : {uint32_t{CKPT_CHECK_DETERMINISM}, uint32_t{CKPT_CHECK_RECOMPUTE}, uint32_t{CKPT_CHECK_INPUTS}, kAll})
      for (uint32_t flags : {0u, uint32_t{CKPT_ARENA_GUARD | CKPT_ARENA_POISON}}) {
        SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + ", checks " + std::to_string(checks) + ", arena flags " + std::to_string(flags));
        Net net = everything();
        const HostState start(net);
        std::vector<Result> expected;
        for (uint64_t at = 0; at < 3; ++at) expected.push_back(plain(net, 42, at));
        start.restore(net);
        Options o;
        o.strategy = strategy;
        o.checks = checks;
        o.arena_flags = flags;
        Session s(o);
        for (uint64_t at = 0; at < 3; ++at) {
          const Step got = s.step(net, 0, 0, false);
          ASSERT_EQ(got.status, CKPT_OK) << got.text;
          EXPECT_EQ(difference(got.result, expected[at]), "");
          if (at > 0) {
            EXPECT_EQ(got.stats.planned, 1u);
            EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
            EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
          }
        }
      }
}

// A slot and an output that come out otherwise each time. (The output reads the slot, or a plan would make that only once.)
Net unsteady(bool slot) {
  Net net;
  auto *layer = net.make<Custom>("unsteady");
  layer->spec.slots = {{.name = "noise", .bytes = floats(4)}};
  layer->spec.outputs = {{.name = "y", .bytes = floats(4), .reads_all = slot}};
  layer->spec.input_flags = {0};
  layer->statistics = {0};
  layer->run_forward = [layer, slot](View &f) {
    layer->statistics[0] += 1;
    const float extra = static_cast<float>(layer->statistics[0]);
    if (f.needs(0)) for (size_t k = 0; k < 4; ++k) f.fslot(0)[k] = slot ? extra : 1.0f;
    if (f.needs_output(0)) for (size_t k = 0; k < 4; ++k) f.fout(0)[k] = f.fin(0)[k] + (slot ? 0.0f : extra);
  };
  layer->run_backward = [](View &f) {
    f.slot(0);
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < 4; ++k) put(dx, k, 1.0f, add);
  };
  uint32_t x = net.add(layer, {net.input(4, true)});
  for (uint32_t k = 0; k < 5; ++k) x = net.then<Mlp>(x, "mlp", size_t{4}, k);
  net.root(net.then<Loss>(x, "loss", size_t{4}, true));
  return net;
}

TEST(TapeChecks, DeterminismNamesSegmentAndSlotOrOutput) {
  for (bool slot : {false, true}) {
    Options o;
    o.strategy = CKPT_STRATEGY_FULL;
    o.checks = CKPT_CHECK_DETERMINISM;
    Net net = unsteady(slot);
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    const Step got = s.step(net, 1);
    EXPECT_EQ(got.status, CKPT_ERROR_CHECK) << got.text;
    for (const char *word : {"'unsteady'", "number 0", slot ? "'noise'" : "'y'"}) EXPECT_NE(got.text.find(word), std::string::npos) << got.text;
    EXPECT_EQ(got.stats.step, 0u);
    // Without recomputation there is nothing to compare.
    o.strategy = CKPT_STRATEGY_STORE_ALL;
    Session all(o);
    EXPECT_EQ(all.step(net, 1).status, CKPT_OK) << ckpt_last_error();
  }
}

// A slot that secretly reads another one.
Net secretive(int how) {
  Net net;
  auto *layer = net.make<Custom>("secretive");
  layer->spec.slots = {{.name = "a", .bytes = floats(4), .reads_all = false}, {.name = "b", .bytes = floats(4), .reads_all = false}};
  if (how == 0) layer->spec.slots[1].reads = {0};  // declared: fine
  layer->spec.outputs = {{.name = "y", .bytes = floats(4), .reads_all = false, .reads = {1}}};
  if (how == 2) layer->spec.slots[1].reads = {0}, layer->spec.outputs[0].reads = {};
  layer->spec.input_flags = {0};
  layer->run_forward = [](View &f) {
    float *a = f.fslot(0), *b = f.fslot(1), *y = f.fout(0);
    if (f.needs(0)) for (size_t k = 0; k < 4; ++k) a[k] = 2 * f.fin(0)[k];
    if (f.needs(1)) for (size_t k = 0; k < 4; ++k) b[k] = (a != nullptr ? a[k] : 0.0f) + 1;
    if (f.needs_output(0)) for (size_t k = 0; k < 4; ++k) y[k] = (b != nullptr ? b[k] : 0.0f) * 3;
  };
  layer->run_backward = [](View &f) {
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < 4; ++k) put(dx, k, f.fgrad(0)[k] * 6, add);
  };
  net.root(net.then<Loss>(net.add(layer, {net.input(4, true)}), "loss", size_t{4}, true));
  return net;
}

TEST(TapeChecks, RecomputeFindsWrongReads) {
  for (int how = 0; how < 3; ++how) {
    Net net = secretive(how);
    Options o;
    o.checks = CKPT_CHECK_RECOMPUTE;
    o.strategy = CKPT_STRATEGY_STORE_ALL;
    Session s(o);
    const Result expected = plain(net, 42, 0);
    const Step got = s.step(net);
    if (how == 0) {
      ASSERT_EQ(got.status, CKPT_OK) << got.text;
      EXPECT_EQ(difference(got.result, expected), "");
      continue;
    }
    EXPECT_EQ(got.status, CKPT_ERROR_CHECK) << got.text;
    for (const char *word : {"'secretive'", "number 0", how == 1 ? "'b'" : "'y'", "reads"}) EXPECT_NE(got.text.find(word), std::string::npos) << got.text;
  }
}

// A callback that does not look whether what it reads is there: the check must find the fault, not be killed by it.
TEST(TapeChecks, RecomputeGivesPoisonWhereAnUndeclaredReadWouldFindNothing) {
  Net net;
  Custom *layer = net.make<Custom>("careless");
  layer->spec.slots = {{.name = "a", .bytes = floats(4), .reads_all = false}, {.name = "b", .bytes = floats(4), .reads_all = false}};
  layer->spec.outputs = {{.name = "y", .bytes = floats(4)}};
  layer->spec.input_flags = {0};
  layer->run_forward = [](View &f) {
    const float *x = f.fin(0);
    float *a = f.fslot(0), *b = f.fslot(1), *y = f.fout(0);
    for (int k = 0; k < 4; ++k) {
      if (f.needs(0)) a[k] = 2 * x[k];
      if (f.needs(1)) b[k] = a[k] + 1;  // reads a, and says that it reads inputs alone
      if (f.needs_output(0)) y[k] = b[k];
    }
  };
  net.root(net.then<Loss>(net.add(layer, {net.input(4, true)}), "loss", size_t{4}, true));
  for (uint32_t flags : {0u, uint32_t{CKPT_ARENA_POISON}}) {
    Options o;
    o.checks = CKPT_CHECK_RECOMPUTE;
    o.arena_flags = flags;
    Session s(o);
    const Step got = s.step(net);
    EXPECT_EQ(got.status, CKPT_ERROR_CHECK) << got.text;
    for (const char *word : {"'careless'", "'b'", "reads"}) EXPECT_NE(got.text.find(word), std::string::npos) << got.text;
  }
}

TEST(TapeChecks, RecomputeFindsWhatWasAskedForAndNeverWritten) {
  Net net;
  Custom *layer = net.make<Custom>("forgetful");
  layer->spec.slots = {{.name = "saved", .bytes = floats(4), .reads_all = false}};
  layer->spec.outputs = {{.name = "y", .bytes = floats(4), .reads_all = false}};
  layer->spec.input_flags = {0};
  layer->run_forward = [](View &f) {
    const float *x = f.fin(0);
    (void)f.fslot(0);
    if (float *y = f.fout(0); f.needs_output(0)) std::copy(x, x + 4, y);
  };
  net.root(net.then<Loss>(net.add(layer, {net.input(4, true)}), "loss", size_t{4}, true));
  for (uint32_t flags : {0u, uint32_t{CKPT_ARENA_POISON}, uint32_t{CKPT_ARENA_POISON | CKPT_ARENA_GUARD}}) {
    Options o;
    o.checks = CKPT_CHECK_RECOMPUTE;
    o.arena_flags = flags;
    Session s(o);
    const Step got = s.step(net);
    EXPECT_EQ(got.status, CKPT_ERROR_CHECK) << got.text;
    for (const char *word : {"'forgetful'", "'saved'", "never written"}) EXPECT_NE(got.text.find(word), std::string::npos) << got.text;
  }
}

TEST(TapeChecks, InputsNamesSegmentAndTensor) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL})
    for (bool use : {false, true}) {  // changed before a later use in the forward pass, or before backward
      Net net;
      net.input(8, true);
      const uint32_t in = net.input(8, true, 9);
      uint32_t x = net.then<Scale>(in, "reads it", size_t{8}, 1u);
      for (uint32_t k = 0; k < 4; ++k) x = net.then<Mlp>(x, "mlp", size_t{8}, k);
      x = net.add(net.make<Mul>("reads it too", size_t{8}), {x, in});
      net.root(net.then<Loss>(x, "loss", size_t{8}, true));
      net.zero_grads();
      Options o;
      o.checks = CKPT_CHECK_INPUTS;
      o.strategy = strategy;
      Session s(o);
      ASSERT_EQ(s.forward(net, use ? 3 : SIZE_MAX), CKPT_OK);
      net.inputs[1].data[7] += 1;
      ckpt_status status = CKPT_OK;
      for (size_t k = 3; use && !status && k < net.nodes.size(); ++k) status = s.run_node(net, net.nodes[k]);
      if (!status) status = s.backward(net);
      EXPECT_EQ(status, CKPT_ERROR_CHECK);
      const std::string text = ckpt_last_error();
      for (const char *word : {"'reads it too'", "number 5", "input 1 of the recording"}) EXPECT_NE(text.find(word), std::string::npos) << text;
      EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
      EXPECT_EQ(s.stats().step, 0u);
    }
}

TEST(TapeChecks, WatchedMemoryIsNamed) {
  for (int when = 0; when < 3; ++when) {  // never, before backward, before a recompute
    Net net;
    uint32_t x = net.input(8, true);
    std::vector<Layer *> layers;
    for (uint32_t k = 0; k < 4; ++k) {
      auto *layer = net.make<Scale>("scale" + std::to_string(k), size_t{8}, k);
      layers.push_back(layer);
      x = net.add(layer, {x});
    }
    net.root(net.then<Loss>(x, "loss", size_t{8}, true));
    Options o;
    o.checks = CKPT_CHECK_INPUTS;
    o.strategy = when == 2 ? CKPT_STRATEGY_FULL : CKPT_STRATEGY_STORE_ALL;
    Session s(o);
    ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
    const Result expected = plain(net, 42, 0);
    net.zero_grads();
    ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
    ASSERT_EQ(s.forward(net, 0), CKPT_OK);
    for (const NetNode &n : net.nodes) {
      const std::vector<ckpt_buffer> in{s.buffers[n.inputs[0]]};
      ckpt_call c = s.call(n.layer, in);
      const ckpt_watch watch{"weights", n.layer->weight.data(), floats(n.layer->weight.size())};
      c.watch = &watch;
      c.watch_count = 1;
      s.buffers.push_back(0);
      ASSERT_EQ(ckpt_segment_run(s.tape, s.segment(n.layer), &c, &s.buffers.back()), CKPT_OK) << ckpt_last_error();
    }
    if (when > 0) layers[1]->weight[0] += 1;
    const ckpt_status status = s.backward(net);
    if (when == 0) {
      ASSERT_EQ(status, CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(difference(collect(net), expected), "");
      continue;
    }
    EXPECT_EQ(status, CKPT_ERROR_CHECK);
    const std::string text = ckpt_last_error();
    for (const char *word : {"'weights'", "'scale1'", "number 1", when == 2 ? "recompute" : "backward"}) EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST(TapeChecks, OverwrittenGuardsFailTheStep) {
  for (int where = 0; where < 4; ++where) {  // a slot, an output, scratch, an input's gradient
    Net net;
    uint32_t x = net.input(16, true);
    x = net.then<Mlp>(x, "mlp", size_t{16});
    x = net.then<Scratchy>(x, "scratchy", size_t{16}, size_t{2});
    net.root(net.then<Loss>(x, "loss", size_t{16}, true));
    Options o;
    o.arena_flags = CKPT_ARENA_GUARD;
    Session s(o);
    s.log.inside = [&](ckpt_frame *f, Layer &layer) {
      char *p = nullptr;
      size_t bytes = 0;
      const bool back = ckpt_frame_is_backward(f) != 0;
      const bool scratchy = layer.spec.name == "scratchy";
      if (!scratchy) return;
      if (where == 0 && !back) p = static_cast<char *>(ckpt_frame_slot(f, 0)), bytes = ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 0);
      if (where == 1 && !back) p = static_cast<char *>(ckpt_frame_output(f, 0)), bytes = ckpt_frame_bytes(f, CKPT_FRAME_OUTPUT, 0);
      if (where == 2 && back) p = static_cast<char *>(ckpt_frame_scratch(f)), bytes = ckpt_frame_bytes(f, CKPT_FRAME_SCRATCH, 0);
      if (where == 3 && back) p = static_cast<char *>(ckpt_frame_input_grad(f, 0, nullptr)), bytes = ckpt_frame_bytes(f, CKPT_FRAME_INPUT_GRAD, 0);
      if (p != nullptr) p[bytes] = 1;
    };
    const Step got = s.step(net);
    EXPECT_EQ(got.status, CKPT_ERROR_CHECK) << where << ": " << got.text;
    s.log.inside = nullptr;
    EXPECT_EQ(s.step(net).status, CKPT_OK) << ckpt_last_error();
  }
}

TEST(TapeChecks, GuardsCountInPredictionAndMeasurement) {
  size_t peak[2];
  for (bool guard : {false, true}) {
    Net net = everything();
    Options o;
    o.arena_flags = guard ? uint32_t{CKPT_ARENA_GUARD} : 0u;
    Session s(o);
    const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
    ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
    const Step got = s.step(net, 1);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(dry.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(dry.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    peak[guard] = got.stats.peak_measured_bytes;
  }
  EXPECT_GT(peak[1], peak[0]);
}

// A layer that reads what it must not finds poison: the laws would see NaN.
TEST(TapeChecks, PoisonIsWhatNobodyWrote) {
  Net net;
  auto *layer = net.make<Custom>("careless");
  layer->spec.slots = {{.name = "unwritten", .bytes = floats(4)}};
  layer->spec.outputs = {{.name = "y", .bytes = floats(4), .reads_all = false}};
  layer->spec.input_flags = {0};
  layer->run_forward = [](View &f) {
    f.slot(0);
    if (f.needs_output(0)) std::memcpy(f.output(0), f.input(0), floats(4));
  };
  layer->run_backward = [](View &f) {
    bool add = false;
    std::memcpy(f.input_grad(0, &add), f.slot(0), floats(4));
  };
  net.root(net.add(layer, {net.input(4, true)}), std::vector<float>(4, 1.0f));
  Options o;
  o.arena_flags = CKPT_ARENA_POISON;
  Session s(o);
  ASSERT_EQ(s.step(net).status, CKPT_OK);
  for (float g : net.inputs[0].grad) EXPECT_TRUE(std::isnan(g)) << g;
}

struct Event {
  uint32_t what, index, recompute;
  size_t in_use;
};

TEST(TapeChecks, TraceTellsEachChangeOfMemory) {
  Net net = everything();
  Options o;
  o.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  Session s(o);
  ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
  std::vector<Event> events;
  ASSERT_EQ(ckpt_tape_set_trace(s.tape, [](void *user, uint32_t what, uint32_t index, size_t in_use, uint32_t recompute) {
    static_cast<std::vector<Event> *>(user)->push_back({what, index, recompute, in_use});
  }, &events), CKPT_OK);
  const Step got = s.step(net, 1);
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  size_t peak = 0, backwards = 0, firsts = 0;
  for (const Event &e : events) {
    peak = std::max(peak, e.in_use);
    backwards += e.what == CKPT_ACTION_BACKWARD;
    firsts += e.what == CKPT_ACTION_FORWARD && !e.recompute;
    EXPECT_LE(e.what, uint32_t{CKPT_ACTION_DROP});
  }
  EXPECT_EQ(peak, got.stats.peak_measured_bytes) << "a timeline shows the peak";
  EXPECT_EQ(backwards, net.nodes.size());
  EXPECT_EQ(firsts, net.nodes.size());
  EXPECT_EQ(events.back().in_use, 0u);
  // Off again.
  const size_t count = events.size();
  ASSERT_EQ(ckpt_tape_set_trace(s.tape, nullptr, nullptr), CKPT_OK);
  ASSERT_EQ(s.step(net, 1).status, CKPT_OK);
  EXPECT_EQ(events.size(), count);
}

}  // namespace
