// What a segment may declare: flags of slots and outputs, groups, scratch, code written by hand, no inputs, no outputs.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

Options with(uint32_t strategy, uint32_t flags = CKPT_ARENA_POISON) {
  Options o;
  o.strategy = strategy;
  o.arena_flags = flags;
  return o;
}

// Unknown, then planned, three steps; returns the last one.
Step check(Net &net, const Options &o) {
  const HostState start(net);
  std::vector<Result> expected;
  for (uint64_t at = 0; at < 3; ++at) expected.push_back(plain(net, o.seed, at));
  start.restore(net);
  Session s(o);
  Step got;
  for (uint64_t at = 0; at < 3; ++at) {
    got = s.step(net, 0, 0, false);
    EXPECT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected[at]), "") << "step " << at;
  }
  EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  start.restore(net);
  return got;
}

Net mlps(uint32_t count, uint32_t pre_flags, uint32_t act_flags) {
  Net net;
  uint32_t x = net.input(64, true);
  for (uint32_t k = 0; k < count; ++k) x = net.then<Mlp>(x, "mlp", size_t{64}, k, pre_flags, act_flags);
  net.root(net.then<Loss>(x, "loss", size_t{64}, true));
  return net;
}

TEST(TapeSegments, RecomputeSlotsAreMadeAgainEvenWithAmpleMemory) {
  Net net = mlps(4, 0, CKPT_SLOT_RECOMPUTE);
  for (uint32_t strategy : {CKPT_STRATEGY_AUTO, CKPT_STRATEGY_STORE_ALL}) {
    const Step got = check(net, with(strategy));
    EXPECT_EQ(got.stats.recompute_count, 4u);
  }
}

TEST(TapeSegments, KeepSlotsAreMadeOnceUnderEveryStrategy) {
  Net net = mlps(4, CKPT_SLOT_KEEP, 0);
  for (uint32_t strategy : {CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) {
    const HostState start(net);
    Session s(with(strategy));
    uint64_t pre = 0;
    s.log.inside = [&](ckpt_frame *f, Layer &l) {
      if (l.spec.name == "mlp" && !ckpt_frame_is_backward(f)) pre += ckpt_frame_needs(f, Mlp::PRE) != 0;
    };
    for (uint64_t at = 0; at < 3; ++at) {
      pre = 0;
      ASSERT_EQ(s.step(net).status, CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(pre, 4u);
    }
    check(net, with(strategy));
  }
}

TEST(TapeSegments, TransientSlotsAreGoneAfterTheForward) {
  // A transient slot lives during the forward alone: two segments of it need it once.
  const auto chain = [](uint32_t flags) {
    Net net;
    uint32_t x = net.input(16, true);
    for (uint32_t k = 0; k < 2; ++k) {
      auto *layer = net.make<Custom>("big inside");
      layer->spec.slots = {{.name = "big", .bytes = 64 * 1024, .reads_all = false, .flags = flags}};
      layer->spec.outputs = {{.name = "y", .bytes = floats(16)}};
      layer->spec.input_flags = {0};
      layer->run_forward = [](View &f) {
        float *big = f.fslot(0);
        if (f.needs(0)) for (size_t i = 0; i < 16 * 1024; ++i) big[i] = f.fin(0)[i % 16];
        if (f.needs_output(0)) for (size_t i = 0; i < 16; ++i) f.fout(0)[i] = must(big, "big")[i];
      };
      layer->run_backward = [flags](View &f) {
        EXPECT_EQ(f.slot(0) == nullptr, (flags & CKPT_SLOT_TRANSIENT) != 0);
        bool add = false;
        float *dx = static_cast<float *>(f.input_grad(0, &add));
        if (dx == nullptr) return;
        for (size_t i = 0; i < 16; ++i) put(dx, i, f.fgrad(0)[i], add);
      };
      x = net.add(layer, {x});
    }
    net.root(net.then<Loss>(x, "loss", size_t{16}, true));
    return net;
  };
  Net transient = chain(CKPT_SLOT_TRANSIENT), kept = chain(0);
  const Step a = check(transient, with(CKPT_STRATEGY_STORE_ALL)), b = check(kept, with(CKPT_STRATEGY_STORE_ALL));
  EXPECT_EQ(a.stats.recompute_count, 0u);
  EXPECT_GE(b.stats.peak_measured_bytes, a.stats.peak_measured_bytes + 64 * 1024 - 512);
}

TEST(TapeSegments, GroupsAreMadeTogetherAndAloneMembersByThemselves) {
  Net net;
  uint32_t x = net.input(48, true);
  for (uint32_t k = 0; k < 3; ++k) x = net.then<Twin>(net.then<Norm>(x, "norm", size_t{2}, size_t{24}, k), "twin", size_t{48});
  net.root(net.then<Loss>(x, "loss", size_t{48}, true));
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL}) check(net, with(strategy));
  // base kept, twin dropped: twin is made alone, the output (its group's other member) is not.
  Options o = with(CKPT_STRATEGY_SELECTIVE);
  o.recompute = {"twin"};
  Session s(o);
  uint64_t alone = 0, with_output = 0;
  s.log.inside = [&](ckpt_frame *f, Layer &l) {
    if (l.spec.name != "twin" || !ckpt_frame_is_recompute(f)) return;
    alone += ckpt_frame_needs(f, Twin::TWIN) != 0;
    with_output += ckpt_frame_needs_output(f, 0) != 0;
  };
  ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
  ASSERT_EQ(s.step(net, 1).status, CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(alone, 3u);
  EXPECT_EQ(with_output, 0u);
}

TEST(TapeSegments, ConsumedSlotsAndScratch) {
  Net net;
  uint32_t x = net.input(32, true);
  for (uint32_t k = 0; k < 4; ++k) x = net.then<Scratchy>(x, "scratchy", size_t{32}, size_t{8});
  net.root(net.then<Loss>(x, "loss", size_t{32}, true));
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL}) check(net, with(strategy, CKPT_ARENA_GUARD | CKPT_ARENA_POISON));
}

TEST(TapeSegments, OutputsInPlaceOfTheirInputs) {
  const auto chain = [](bool in_place) {
    Net net;
    uint32_t x = net.then<Linear>(net.input(256, true), "first", size_t{1}, size_t{256}, size_t{256});
    for (uint32_t k = 0; k < 6; ++k) {
      auto *layer = net.make<Custom>("half");
      layer->spec.outputs = {{.name = "y", .bytes = floats(256), .in_place_input = in_place ? 1u : 0u}};
      layer->spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
      layer->run_forward = [](View &f) {
        const float *from = f.fin(0);
        float *to = f.fout(0);
        if (f.needs_output(0)) for (size_t i = 0; i < 256; ++i) to[i] = from[i] * 0.5f;
      };
      layer->run_backward = [](View &f) {
        bool add = false;
        float *dx = static_cast<float *>(f.input_grad(0, &add));
        for (size_t i = 0; i < 256; ++i) put(dx, i, f.fgrad(0)[i] * 0.5f, add);
      };
      x = net.add(layer, {x});
    }
    net.root(net.then<Loss>(x, "loss", size_t{256}, true));
    return net;
  };
  Net in_place = chain(true), apart = chain(false);
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_AUTO}) {
    const Step a = check(in_place, with(strategy)), b = check(apart, with(strategy));
    EXPECT_LE(a.stats.arena_measured_bytes, b.stats.arena_measured_bytes);
  }
  // With the input's reader still to come it is not overwritten.
  Net skip;
  const uint32_t x = skip.then<Linear>(skip.input(24, true), "first", size_t{1}, size_t{24}, size_t{24});
  const uint32_t y = skip.then<Relu>(x, "relu", size_t{24}, true);
  skip.root(skip.then<Loss>(skip.add(skip.make<Mul>("product", size_t{24}), {x, y}), "loss", size_t{24}, true));
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL}) check(skip, with(strategy));
}

TEST(TapeSegments, CodeWrittenByHandIsNeverRunAgain) {
  Net net;
  uint32_t x = net.input(48, true);
  for (uint32_t k = 0; k < 6; ++k) {
    auto *layer = net.make<Mlp>(k % 2 == 0 ? "by hand" : "mlp", size_t{48}, k);
    layer->replayable = k % 2 != 0;
    x = net.add(layer, {x});
  }
  net.root(net.then<Loss>(x, "loss", size_t{48}, true));
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) {
    check(net, with(strategy));
    Session s(with(strategy));
    uint64_t by_hand = 0;
    s.log.inside = [&](ckpt_frame *f, Layer &l) { by_hand += !l.replayable && !ckpt_frame_is_backward(f); };
    for (int at = 0; at < 2; ++at) ASSERT_EQ(s.step(net).status, CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(by_hand, 6u);
  }
}

TEST(TapeSegments, WithoutInputsOrOutputs) {
  Net net;
  auto *source = net.make<Custom>("source");
  source->spec.outputs = {{.name = "x", .bytes = floats(8)}};
  source->set_weight(8, 3);
  source->run_forward = [source](View &f) {
    if (f.needs_output(0)) std::memcpy(f.output(0), source->weight.data(), floats(8));
  };
  source->run_backward = [source](View &f) {
    for (size_t k = 0; k < 8; ++k) source->weight_grad[k] += f.fgrad(0)[k];
  };
  auto *sink = net.make<Custom>("sink");
  sink->spec.input_flags = {0};
  sink->statistics = {0};
  sink->run_forward = [sink](View &f) { sink->statistics[0] += static_cast<double>(f.fin(0)[0]); };
  const uint32_t x = net.add(source, {});
  net.add(sink, {x});
  net.root(net.then<Loss>(net.then<Scale>(x, "scale", size_t{8}, 1u), "loss", size_t{8}, true));
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_FULL}) {
    const Step got = check(net, with(strategy));
    EXPECT_EQ(got.stats.skipped_count, 1u);
  }
}

TEST(TapeSegments, ZeroBytesAreThereAndDistinct) {
  Net net;
  auto *layer = net.make<Custom>("empty");
  layer->spec.slots = {{.name = "nothing", .bytes = 0}};
  layer->spec.outputs = {{.name = "nothing too", .bytes = 0}, {.name = "y", .bytes = floats(4)}};
  layer->spec.input_flags = {0, 0};
  layer->run_forward = [](View &f) {
    const bool needs = f.needs(0) | f.needs_output(0) | f.needs_output(1);
    if (!needs) return;
    if (f.needs(0)) must(f.slot(0), "zero-byte slot");
    if (f.needs_output(0)) must(f.output(0), "zero-byte output");
    if (f.needs_output(1)) std::memcpy(f.output(1), f.input(0), floats(4));
  };
  layer->run_backward = [](View &f) {
    must(f.slot(0), "zero-byte slot");
    bool add = false;
    float *dx = static_cast<float *>(f.input_grad(0, &add));
    for (size_t k = 0; k < 4; ++k) put(dx, k, f.fgrad(1)[k], add);
    f.input_grad(1, &add);
  };
  const uint32_t a = net.input(4, true), b = net.input(0, true);
  const uint32_t first = net.add(layer, {a, b});
  const uint32_t second = net.add(layer, {first + 1, first});
  net.root(net.then<Loss>(second + 1, "loss", size_t{4}, true));
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL})
    for (uint32_t flags : {0u, uint32_t{CKPT_ARENA_GUARD | CKPT_ARENA_POISON}}) check(net, with(strategy, flags));
}

TEST(TapeSegments, WhatComputesNothingHasNoScratch) {
  Session s({});
  ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
  d.name = "looks";
  d.input_count = 1;
  d.forward_scratch_bytes = 33;
  d.forward = [](void *user, ckpt_frame *f) -> ckpt_status {
    EXPECT_EQ(ckpt_frame_scratch(f), nullptr);
    EXPECT_EQ(ckpt_frame_bytes(f, CKPT_FRAME_SCRATCH, 0), 0u);
    ++*static_cast<int *>(user);
    return CKPT_OK;
  };
  d.backward = [](void *, ckpt_frame *) -> ckpt_status { return CKPT_OK; };
  ckpt_segment *segment = nullptr;
  ASSERT_EQ(ckpt_segment_create(&d, &segment), CKPT_OK) << ckpt_last_error();
  char data[10] = {};
  ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
  in.data = data;
  in.bytes = sizeof data;
  ckpt_buffer x = 0;
  ASSERT_EQ(ckpt_tape_input(s.tape, &in, &x), CKPT_OK);
  int runs = 0;
  ckpt_call c = CKPT_CALL_INIT;
  c.input_count = 1;
  c.inputs = &x;
  c.user = &runs;
  ASSERT_EQ(ckpt_segment_run(s.tape, segment, &c, nullptr), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
  ckpt_segment_destroy(segment);
}

TEST(TapeSegments, SizesOfAUseOverrideTheSegments) {
  Session s({});
  struct Seen { size_t slot, output, input, scratch; } seen{};
  ckpt_slot slot{};
  slot.name = "slot";
  slot.bytes = 100;
  ckpt_output out{};
  out.name = "out";
  out.bytes = 200;
  ckpt_segment_desc d = CKPT_SEGMENT_DESC_INIT;
  d.name = "sized";
  d.slots = &slot;
  d.slot_count = 1;
  d.outputs = &out;
  d.output_count = 1;
  d.input_count = 1;
  d.forward_scratch_bytes = 33;
  d.forward = [](void *user, ckpt_frame *f) -> ckpt_status {
    auto *to = static_cast<Seen *>(user);
    to->slot = ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 0);
    to->output = ckpt_frame_bytes(f, CKPT_FRAME_OUTPUT, 0);
    to->input = ckpt_frame_bytes(f, CKPT_FRAME_INPUT, 0);
    to->scratch = ckpt_frame_bytes(f, CKPT_FRAME_SCRATCH, 0);
    EXPECT_EQ(ckpt_frame_bytes(f, CKPT_FRAME_SLOT, 1), 0u);
    EXPECT_EQ(ckpt_frame_bytes(f, 99, 0), 0u);
    std::memset(ckpt_frame_slot(f, 0), 1, to->slot);
    std::memset(ckpt_frame_output(f, 0), 2, to->output);
    std::memset(ckpt_frame_scratch(f), 3, to->scratch);
    return CKPT_OK;
  };
  d.backward = [](void *, ckpt_frame *) -> ckpt_status { return CKPT_OK; };
  ckpt_segment *segment = nullptr;
  ASSERT_EQ(ckpt_segment_create(&d, &segment), CKPT_OK) << ckpt_last_error();
  char data[10] = {};
  ckpt_input_desc in = CKPT_INPUT_DESC_INIT;
  in.data = data;
  in.bytes = sizeof data;
  const size_t slot_bytes = 50, output_bytes = 70;
  ckpt_buffer x = 0, y = 0;
  for (bool own : {false, true}) {
    ASSERT_EQ(ckpt_tape_input(s.tape, &in, &x), CKPT_OK);
    ckpt_call c = CKPT_CALL_INIT;
    c.input_count = 1;
    c.inputs = &x;
    c.user = &seen;
    if (own) c.slot_bytes = &slot_bytes, c.output_bytes = &output_bytes;
    ASSERT_EQ(ckpt_segment_run(s.tape, segment, &c, &y), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(seen.slot, own ? 50u : 100u);
    EXPECT_EQ(seen.output, own ? 70u : 200u);
    EXPECT_EQ(seen.input, 10u);
    EXPECT_EQ(seen.scratch, 33u);
    ASSERT_EQ(ckpt_backward(s.tape, &y, nullptr, 1, 0), CKPT_OK) << ckpt_last_error();
  }
  ckpt_segment_destroy(segment);
}

}  // namespace
