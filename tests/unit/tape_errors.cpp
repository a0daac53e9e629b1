// Bad input: each a status and a sentence that names the things; and nothing has happened.
#include <gtest/gtest.h>

#include "../support/ops_net.h"

namespace {

using namespace ops;

// The status, and a text that has all of these in it.
void refused(ckpt_status got, ckpt_status expected, std::initializer_list<const char *> words, int line) {
  const std::string text = ckpt_last_error();
  EXPECT_EQ(got, expected) << "line " << line << ": " << text;
  if (got == CKPT_OK) return;
  EXPECT_EQ(ckpt_last_status(), expected);
  for (const char *w : words) EXPECT_NE(text.find(w), std::string::npos) << "line " << line << ": '" << w << "' is not in: " << text;
}
#define REFUSED(call, status, ...) refused((call), (status), {__VA_ARGS__}, __LINE__)

ckpt_status nothing(void *, ckpt_frame *) { return CKPT_OK; }

// A segment that can be broken in one place at a time.
struct SegmentParts {
  ckpt_slot slots[2] = {};
  ckpt_output outputs[1] = {};
  uint32_t reads[2] = {0, 0};
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  SegmentParts() {
    slots[0].name = "a";
    slots[0].bytes = 16;
    slots[1].name = "b";
    slots[1].bytes = 16;
    outputs[0].name = "y";
    outputs[0].bytes = 16;
    desc.name = "seg";
    desc.forward = nothing;
    desc.backward = nothing;
    desc.slots = slots;
    desc.slot_count = 2;
    desc.outputs = outputs;
    desc.output_count = 1;
    desc.input_count = 1;
  }
  ckpt_status create() {
    ckpt_segment *s = reinterpret_cast<ckpt_segment *>(8);
    const ckpt_status status = ckpt_segment_create(&desc, &s);
    if (status) { EXPECT_EQ(s, nullptr) << "an out argument is NULL after a failure"; }
    else ckpt_segment_destroy(s);
    return status;
  }
};

Net little() {
  Net net;
  net.root(net.then<Loss>(net.then<Mlp>(net.input(8, true), "mlp", size_t{8}), "loss", size_t{8}, true));
  net.zero_grads();
  return net;
}

TEST(TapeErrors, Segments) {
  SegmentParts good;
  EXPECT_EQ(good.create(), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(ckpt_segment_create(&good.desc, nullptr), CKPT_ERROR_INVALID_ARGUMENT);
  ckpt_segment *s = nullptr;
  REFUSED(ckpt_segment_create(nullptr, &s), CKPT_ERROR_INVALID_ARGUMENT, "ckpt_segment_create", "desc");
  { SegmentParts p; p.desc.struct_size = 8; REFUSED(p.create(), CKPT_ERROR_STRUCT_SIZE, "desc", "8"); }
  { SegmentParts p; p.desc.slot_size = 8; REFUSED(p.create(), CKPT_ERROR_STRUCT_SIZE, "slot", "8"); }
  { SegmentParts p; p.desc.output_size = 8; REFUSED(p.create(), CKPT_ERROR_STRUCT_SIZE, "output", "8"); }
  { SegmentParts p; p.desc.name = nullptr; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "name", "NULL"); }
  { SegmentParts p; p.desc.name = ""; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "name", "empty"); }
  { SegmentParts p; p.desc.flags = 4; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "flags", "0x4"); }
  { SegmentParts p; p.desc.reserved = 3; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "reserved", "3"); }
  { SegmentParts p; p.desc.slots = nullptr; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "slots", "2"); }
  { SegmentParts p; p.desc.outputs = nullptr; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "outputs"); }
  { SegmentParts p; p.desc.slot_count = 257; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "257", "256"); }
  { SegmentParts p; p.desc.input_count = 70000; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "70000"); }
  { SegmentParts p; p.desc.state_bytes = 8; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "save_state", "8"); }
  { SegmentParts p; p.desc.backward_scratch_bytes = SIZE_MAX; REFUSED(p.create(), CKPT_ERROR_OVERFLOW, "'seg'", "scratch"); }
  { SegmentParts p; p.slots[1].name = nullptr; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "slot 1"); }
  { SegmentParts p; p.slots[1].name = ""; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "slot 1", "empty"); }
  { SegmentParts p; p.slots[1].name = "a"; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'a'"); }
  { SegmentParts p; p.outputs[0].name = "b"; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'b'"); }
  { SegmentParts p; p.slots[0].flags = 1u << 20; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'a'", "0x100000"); }
  { SegmentParts p; p.outputs[0].flags = 1u << 20; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'y'", "0x100000"); }
  { SegmentParts p; p.slots[0].bytes = SIZE_MAX; REFUSED(p.create(), CKPT_ERROR_OVERFLOW, "'seg'", "a"); }
  { SegmentParts p; p.slots[0].cost_seconds = -1; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'a'", "-1"); }
  { SegmentParts p; p.slots[0].reads = p.reads; p.slots[0].read_count = 1; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'a'", "reads", "0"); }
  { SegmentParts p; p.reads[0] = 9; p.outputs[0].reads = p.reads; p.outputs[0].read_count = 1; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'y'", "9"); }
  { SegmentParts p; p.slots[0].flags = CKPT_SLOT_KEEP | CKPT_SLOT_RECOMPUTE; REFUSED(p.create(), CKPT_ERROR_CONFLICT, "'seg'", "'a'", "KEEP", "RECOMPUTE"); }
  { SegmentParts p; p.slots[0].flags = CKPT_SLOT_ALONE; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'a'", "ALONE", "group"); }
  { SegmentParts p; p.desc.forward = nullptr; p.slots[0].flags = CKPT_SLOT_RECOMPUTE; REFUSED(p.create(), CKPT_ERROR_CONFLICT, "'seg'", "'a'", "RECOMPUTE", "forward"); }
  { SegmentParts p; p.outputs[0].in_place_input = 2; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'y'", "in_place_input", "2"); }
  { SegmentParts p; char m[16]; p.outputs[0].memory = m; p.outputs[0].in_place_input = 1; REFUSED(p.create(), CKPT_ERROR_CONFLICT, "'seg'", "'y'", "in_place_input"); }
  { SegmentParts p; const uint32_t f[1] = {64}; p.desc.input_flags = f; REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "input 0", "0x40"); }
  {
    SegmentParts p;
    p.slots[0].group = p.slots[1].group = 3;
    p.slots[0].flags = CKPT_SLOT_KEEP;
    REFUSED(p.create(), CKPT_ERROR_CONFLICT, "'seg'", "'a'", "'b'", "KEEP");
  }
  {
    SegmentParts p;
    static const uint32_t none = 0;
    p.slots[0].flags = CKPT_SLOT_TRANSIENT;
    p.slots[1].reads = p.outputs[0].reads = &none;
    REFUSED(p.create(), CKPT_ERROR_INVALID_ARGUMENT, "'seg'", "'a'", "TRANSIENT");
  }
}

TEST(TapeErrors, Tapes) {
  Session base({});
  ckpt_tape *tape = nullptr;
  ckpt_tape_desc d = CKPT_TAPE_DESC_INIT;
  REFUSED(ckpt_tape_create(&d, &tape), CKPT_ERROR_INVALID_ARGUMENT, "desc.arena", "NULL");
  d.arena = base.arena;
  REFUSED(ckpt_tape_create(&d, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_tape");
  REFUSED(ckpt_tape_create(nullptr, &tape), CKPT_ERROR_INVALID_ARGUMENT, "desc");
  ckpt_tape_desc x = d;
  x.struct_size = 12;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_STRUCT_SIZE, "12");
  x = d, x.checks = 64;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "checks", "0x40");
  x = d, x.replan = 7;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "replan", "7");
  x = d, x.strategy = 99;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "strategy", "99");
  x = d, x.strategy = CKPT_STRATEGY_UNIFORM;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "k", "0", "uniform");
  x = d, x.strategy = CKPT_STRATEGY_SQRT, x.strategy_k = 3;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "3", "sqrt");
  for (size_t budget : {size_t{1}, base.options.alignment - 1}) {  // not "no budget"
    x = d, x.budget_bytes = budget;
    REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "budget_bytes", std::to_string(budget).c_str(), "alignment");
  }
  x = d, x.budget_bytes = base.options.capacity + base.options.alignment;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "budget_bytes", std::to_string(x.budget_bytes).c_str(), "capacity");
  x = d, x.in_flight_count = 1000000;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "in_flight", "1000000");
  x = d, x.strategy = CKPT_STRATEGY_SELECTIVE, x.keep_pattern_count = 2;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "keep_patterns", "NULL");
  const char *patterns[1] = {nullptr};
  x.keep_pattern_count = 1, x.keep_patterns = patterns;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "keep_patterns[0]");
  patterns[0] = "act";
  x.strategy = CKPT_STRATEGY_SQRT;
  REFUSED(ckpt_tape_create(&x, &tape), CKPT_ERROR_INVALID_ARGUMENT, "pattern");
  EXPECT_EQ(tape, nullptr);
}

TEST(TapeErrors, PatternsThatMatchNothingOrBoth) {
  for (bool known : {false, true}) {
    Net net = little();
    Options o;
    o.strategy = CKPT_STRATEGY_SELECTIVE;
    o.keep = {"act", "no such slot*"};
    Session s(o);
    ASSERT_EQ(s.made, CKPT_OK) << ckpt_last_error();
    const Step got = known ? s.step(net, 1, CKPT_TAPE_DRY) : s.step(net);
    if (known) {
      EXPECT_EQ(got.status, CKPT_ERROR_NOT_FOUND) << got.text;
      EXPECT_NE(got.text.find("no such slot*"), std::string::npos) << got.text;
    } else {
      // An unknown step knows only what it has met; the next one is refused.
      const Step next = s.step(net);
      EXPECT_EQ(next.status, CKPT_ERROR_NOT_FOUND) << next.text;
    }
    Options both;
    both.strategy = CKPT_STRATEGY_SELECTIVE;
    both.keep = {"a*"};
    both.recompute = {"act"};
    Session b(both);
    const Step conflict = b.step(net, 1, CKPT_TAPE_DRY);
    EXPECT_EQ(conflict.status, CKPT_ERROR_CONFLICT) << conflict.text;
    EXPECT_NE(conflict.text.find("act"), std::string::npos) << conflict.text;
  }
}

TEST(TapeErrors, Inputs) {
  Session s({});
  ckpt_input_desc d = CKPT_INPUT_DESC_INIT;
  ckpt_buffer b = 1;
  char data[4] = {};
  d.bytes = 4;
  REFUSED(ckpt_tape_input(s.tape, &d, &b), CKPT_ERROR_INVALID_ARGUMENT, "desc.data", "4");
  EXPECT_EQ(b, 0u);
  d.data = data;
  REFUSED(ckpt_tape_input(nullptr, &d, &b), CKPT_ERROR_INVALID_ARGUMENT, "tape");
  REFUSED(ckpt_tape_input(s.tape, nullptr, &b), CKPT_ERROR_INVALID_ARGUMENT, "desc");
  REFUSED(ckpt_tape_input(s.tape, &d, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_buffer");
  d.flags = 8;
  REFUSED(ckpt_tape_input(s.tape, &d, &b), CKPT_ERROR_INVALID_ARGUMENT, "flags", "0x8");
  d.flags = 0, d.bytes = SIZE_MAX;
  REFUSED(ckpt_tape_input(s.tape, &d, &b), CKPT_ERROR_OVERFLOW, "bytes");
  d.bytes = 4, d.struct_size = 4;
  REFUSED(ckpt_tape_input(s.tape, &d, &b), CKPT_ERROR_STRUCT_SIZE, "desc");
  // Refused calls have not started a recording.
  Net net = little();
  const std::vector<ckpt_buffer> none{0};
  ckpt_call c = s.call(net.nodes[0].layer, none);
  REFUSED(ckpt_segment_run(s.tape, s.segment(net.nodes[0].layer), &c, &b), CKPT_ERROR_STALE, "inputs[0]");
  EXPECT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK) << ckpt_last_error();
}

TEST(TapeErrors, CallsOutOfOrder) {
  Net net = little();
  Session s({});
  ckpt_buffer none = 0;
  REFUSED(ckpt_backward(s.tape, &none, nullptr, 1, 0), CKPT_ERROR_STATE, "ckpt_backward", "nothing is recorded");
  REFUSED(ckpt_backward(nullptr, &none, nullptr, 1, 0), CKPT_ERROR_INVALID_ARGUMENT, "tape");
  REFUSED(ckpt_segment_end(nullptr, CKPT_OK, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "frame");
  EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK) << "nothing on nothing";
  REFUSED(ckpt_tape_reset(nullptr), CKPT_ERROR_INVALID_ARGUMENT, "tape");
  REFUSED(ckpt_tape_begin(s.tape, 0, 8), CKPT_ERROR_INVALID_ARGUMENT, "flags", "0x8");
  REFUSED(ckpt_tape_begin(nullptr, 0, 0), CKPT_ERROR_INVALID_ARGUMENT, "tape");
  const void *data = nullptr;
  REFUSED(ckpt_tape_read(s.tape, 1, &data), CKPT_ERROR_STALE, "nothing is recorded");
  REFUSED(ckpt_tape_release(s.tape, 1), CKPT_ERROR_STALE, "nothing is recorded");
  ASSERT_EQ(s.forward(net), CKPT_OK);
  REFUSED(ckpt_tape_begin(s.tape, 0, 0), CKPT_ERROR_STATE, "in progress");
  REFUSED(ckpt_tape_set_step(s.tape, 3), CKPT_ERROR_STATE, "in progress");
  REFUSED(ckpt_backward(s.tape, &s.buffers.back(), nullptr, 0, 0), CKPT_ERROR_INVALID_ARGUMENT, "output_count", "0");
  // An error in the arguments of a backward ends the recording like any other.
  REFUSED(ckpt_backward(s.tape, &s.buffers.back(), nullptr, 1, 0), CKPT_ERROR_STATE, "nothing is recorded");
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
  REFUSED(ckpt_tape_set_step(s.tape, uint64_t{1} << 36), CKPT_ERROR_OVERFLOW, "2^36", "68719476736");
}

TEST(TapeErrors, BetweenBeginAndEnd) {
  Net net;
  auto *layer = net.make<Mlp>("by hand", size_t{8});
  layer->replayable = false;
  const uint32_t x = net.add(layer, {net.input(8, true)});
  net.root(net.then<Loss>(x, "loss", size_t{8}, true));
  net.zero_grads();
  Session s({});
  ASSERT_EQ(s.forward(net, 0), CKPT_OK);
  const std::vector<ckpt_buffer> in{s.buffers[0]};
  ckpt_call c = s.call(layer, in);
  ckpt_frame *f = nullptr, *second = nullptr;
  ASSERT_EQ(ckpt_segment_begin(s.tape, s.segment(layer), &c, &f), CKPT_OK);
  ckpt_call c2 = s.call(layer, in);
  REFUSED(ckpt_segment_begin(s.tape, s.segment(layer), &c2, &second), CKPT_ERROR_STATE, "'by hand'", "has begun");
  EXPECT_EQ(second, nullptr);
  REFUSED(ckpt_backward(s.tape, in.data(), nullptr, 1, 0), CKPT_ERROR_STATE, "'by hand'");
  REFUSED(ckpt_tape_reset(s.tape), CKPT_ERROR_STATE, "'by hand'");
  const void *data = nullptr;
  ckpt_recording *r = nullptr;
  REFUSED(ckpt_tape_detach(s.tape, &r), CKPT_ERROR_STATE, "'by hand'");
  (void)ckpt_tape_read(s.tape, in[0], &data);
  // Read-only functions work.
  EXPECT_EQ(s.stats().segment_count, 0u);
  uint64_t step = 9;
  EXPECT_EQ(ckpt_tape_get_step(s.tape, &step), CKPT_OK);
  EXPECT_EQ(step, 0u);
  ASSERT_EQ(call_layer(s.uses()[0], f, false), CKPT_OK);
  ckpt_buffer out = 0;
  ASSERT_EQ(ckpt_segment_end(f, CKPT_OK, &out), CKPT_OK) << ckpt_last_error();
  REFUSED(ckpt_segment_end(f, CKPT_OK, &out), CKPT_ERROR_STATE, "ended");
  EXPECT_EQ(ckpt_frame_slot(f, 0), nullptr) << "a frame that has ended gives nothing";
  EXPECT_EQ(ckpt_frame_needs(f, 0), 0);
  ckpt_tape_reset(s.tape);
  s.uses().clear();
}

TEST(TapeErrors, EndWithAFailureAbandonsTheRecording) {
  Net net;
  auto *layer = net.make<Mlp>("by hand", size_t{8});
  layer->replayable = false;
  net.add(layer, {net.input(8, true)});
  Session s({});
  for (const char *text : {"no luck", static_cast<const char *>(nullptr)}) {
    ASSERT_EQ(s.forward(net, 0), CKPT_OK);
    const std::vector<ckpt_buffer> in{s.buffers[0]};
    ckpt_call c = s.call(layer, in);
    ckpt_frame *f = nullptr;
    ASSERT_EQ(ckpt_segment_begin(s.tape, s.segment(layer), &c, &f), CKPT_OK);
    ckpt_buffer out = 5;
    const ckpt_status told = text != nullptr ? ckpt_frame_fail(f, 12, text) : 12;
    REFUSED(ckpt_segment_end(f, told, &out), 12, "'by hand'", text != nullptr ? text : "12");
    EXPECT_EQ(out, 0u);
    EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    const void *data = nullptr;
    EXPECT_EQ(ckpt_tape_read(s.tape, in[0], &data), CKPT_ERROR_STALE);
  }
}

TEST(TapeErrors, WithoutRoomForOutputs) {
  Net net = little();
  Session s({});
  ASSERT_EQ(s.forward(net, 0), CKPT_OK);
  const std::vector<ckpt_buffer> in{s.buffers[0]};
  ckpt_call c = s.call(net.nodes[0].layer, in);
  REFUSED(ckpt_segment_run(s.tape, s.segment(net.nodes[0].layer), &c, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_outputs", "'mlp'");
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

TEST(TapeErrors, Calls) {
  Net net = little();
  Session s({});
  Layer *layer = net.nodes[0].layer;
  ckpt_segment *segment = s.segment(layer);
  ckpt_buffer out = 0;
  ASSERT_EQ(s.forward(net, 0), CKPT_OK);
  const std::vector<ckpt_buffer> in{s.buffers[0]};
  const auto run = [&](auto &&change) {
    ckpt_call c = s.call(layer, in);
    change(c);
    return ckpt_segment_run(s.tape, segment, &c, &out);
  };
  REFUSED(run([](ckpt_call &c) { c.input_count = 2; }), CKPT_ERROR_INVALID_ARGUMENT, "'mlp'", "input_count", "2", "1");
  REFUSED(run([](ckpt_call &c) { c.inputs = nullptr; }), CKPT_ERROR_INVALID_ARGUMENT, "'mlp'", "inputs", "NULL");
  REFUSED(run([](ckpt_call &c) { c.reserved = 5; }), CKPT_ERROR_INVALID_ARGUMENT, "reserved", "5");
  REFUSED(run([](ckpt_call &c) { c.watch_count = 1; }), CKPT_ERROR_INVALID_ARGUMENT, "watch", "NULL");
  const size_t huge[2] = {SIZE_MAX, 4};
  REFUSED(run([&](ckpt_call &c) { c.slot_bytes = huge; }), CKPT_ERROR_OVERFLOW, "'mlp'", "'pre'");
  for (Use &u : s.uses()) EXPECT_EQ(u.released, 1) << "a refused call is released too";
  {
    ckpt_call c = s.call(layer, in);
    c.struct_size = 4;
    REFUSED(ckpt_segment_run(s.tape, segment, &c, &out), CKPT_ERROR_STRUCT_SIZE, "call", "4");
    s.uses().back().released = 1;  // what cannot be read cannot be released
  }
  REFUSED(ckpt_segment_run(s.tape, segment, nullptr, &out), CKPT_ERROR_INVALID_ARGUMENT, "call");
  ckpt_call c = s.call(layer, in);
  REFUSED(ckpt_segment_run(s.tape, nullptr, &c, &out), CKPT_ERROR_INVALID_ARGUMENT, "segment");
  c = s.call(layer, in);
  REFUSED(ckpt_segment_run(nullptr, segment, &c, &out), CKPT_ERROR_INVALID_ARGUMENT, "tape");
  EXPECT_EQ(s.uses().back().released, 1) << "also called when begin fails";
  // After all that the recording is as it was.
  ASSERT_EQ(s.run_node(net, net.nodes[0]), CKPT_OK) << ckpt_last_error();
  ASSERT_EQ(s.run_node(net, net.nodes[1]), CKPT_OK) << ckpt_last_error();
  const Result expected = plain(net, 42, 0);
  net.zero_grads();
  ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(difference(collect(net), expected), "");
}

TEST(TapeErrors, StaleAndForeignBuffers) {
  Net net = little();
  Session a({}), b({});
  ASSERT_EQ(a.forward(net, 1), CKPT_OK);
  const std::vector<ckpt_buffer> old = a.buffers;
  ASSERT_EQ(ckpt_tape_reset(a.tape), CKPT_OK);
  ASSERT_EQ(a.forward(net, 1), CKPT_OK);
  ASSERT_EQ(b.forward(net, 1), CKPT_OK);
  ckpt_buffer out = 0;
  const auto run = [&](ckpt_buffer buffer) {
    const std::vector<ckpt_buffer> in{buffer};
    ckpt_call c = a.call(net.nodes[0].layer, in);
    return ckpt_segment_run(a.tape, a.segment(net.nodes[0].layer), &c, &out);
  };
  REFUSED(run(0), CKPT_ERROR_STALE, "inputs[0]", "'mlp'", "0");
  REFUSED(run(old[1]), CKPT_ERROR_STALE, "inputs[0]", "another recording");
  REFUSED(run(b.buffers[1]), CKPT_ERROR_STALE, "inputs[0]", "another tape");
  REFUSED(run(a.buffers[1] + 100), CKPT_ERROR_STALE, "inputs[0]", "101");
  const void *data = nullptr;
  REFUSED(ckpt_tape_read(a.tape, old[1], &data), CKPT_ERROR_STALE, "another recording");
  REFUSED(ckpt_tape_release(a.tape, b.buffers[0]), CKPT_ERROR_STALE, "another tape");
  REFUSED(ckpt_backward(a.tape, &old[1], nullptr, 1, 0), CKPT_ERROR_STALE, "outputs[0]");
}

TEST(TapeErrors, Roots) {
  Net net;
  auto *split = net.make<Split>("split", size_t{8}, 1u, uint32_t{CKPT_OUTPUT_NO_GRAD});
  const uint32_t first = net.add(split, {net.input(8, true)});
  net.zero_grads();
  Session s({});
  const auto backward = [&](std::vector<uint32_t> values, uint32_t flags = 0) {
    EXPECT_EQ(s.forward(net), CKPT_OK);
    std::vector<ckpt_buffer> b;
    for (uint32_t v : values) b.push_back(s.buffers[v]);
    return ckpt_backward(s.tape, b.data(), nullptr, static_cast<uint32_t>(b.size()), flags);
  };
  REFUSED(backward({0}), CKPT_ERROR_INVALID_ARGUMENT, "outputs[0]", "input");
  REFUSED(backward({first, first}), CKPT_ERROR_INVALID_ARGUMENT, "outputs[1]", "before");
  REFUSED(backward({first, first + 1}), CKPT_ERROR_INVALID_ARGUMENT, "outputs[1]", "'z'", "'split'", "NO_GRAD");
  REFUSED(backward({first}, 4), CKPT_ERROR_INVALID_ARGUMENT, "flags", "0x4");
  EXPECT_EQ(s.forward(net), CKPT_OK);
  REFUSED(ckpt_backward(s.tape, nullptr, nullptr, 1, 0), CKPT_ERROR_INVALID_ARGUMENT, "outputs", "NULL");
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

TEST(TapeErrors, WhatACallbackNeverAskedFor) {
  for (int which = 0; which < 4; ++which) {
    Net net;
    auto *layer = net.make<Custom>("lazy");
    layer->spec.slots = {{.name = "slot", .bytes = 16}};
    layer->spec.outputs = {{.name = "out", .bytes = floats(4)}};
    layer->spec.input_flags = {0};
    layer->run_forward = [which](View &f) {
      if (which == 3 && f.is_recompute()) return;
      if (which != 0) f.slot(0);
      if (which != 1) f.output(0);
    };
    layer->run_backward = [which](View &f) {
      bool add = false;
      if (which != 2) f.input_grad(0, &add);
    };
    const uint32_t x = net.add(layer, {net.input(4, true)});
    net.root(net.add(layer, {x}), std::vector<float>(4, 1.0f));
    Options o;
    o.strategy = which == 3 ? CKPT_STRATEGY_EVERY_SEGMENT : CKPT_STRATEGY_STORE_ALL;
    Session s(o);
    const Step got = s.step(net);
    EXPECT_EQ(got.status, CKPT_ERROR_NOT_FILLED) << got.text;
    const char *name = which == 0 || which == 3 ? "'slot'" : which == 1 ? "'out'" : "input 0";
    EXPECT_NE(got.text.find("'lazy'"), std::string::npos) << got.text;
    EXPECT_NE(got.text.find(name), std::string::npos) << got.text;
    EXPECT_NE(got.text.find(which < 2 ? "number 0" : "number 1"), std::string::npos) << got.text;
    if (which == 3) { EXPECT_NE(got.text.find("recompute"), std::string::npos) << got.text; }
    EXPECT_EQ(got.stats.step, 0u);
  }
}

TEST(TapeErrors, NumbersOutOfRangeFailTheFrame) {
  const char *words[] = {"slot 1", "slot 2", "output 1", "output 5", "input 1", "site", "output 3", "input 9"};
  for (int which = 0; which < 8; ++which) {
    Net net;
    auto *layer = net.make<Custom>("wild");
    layer->spec.slots = {{.name = "slot", .bytes = 16}};
    layer->spec.outputs = {{.name = "out", .bytes = floats(4)}};
    layer->spec.input_flags = {0};
    layer->run_forward = [](View &f) { f.slot(0), f.output(0); };
    layer->run_backward = [](View &f) {
      bool add = false;
      f.input_grad(0, &add);
    };
    net.root(net.add(layer, {net.input(4, true)}), std::vector<float>(4, 1.0f));
    Session s({});
    s.log.inside = [which](ckpt_frame *f, Layer &) {
      const bool back = ckpt_frame_is_backward(f) != 0;
      int add = 1;
      ckpt_philox p;
      switch (which) {
        case 0: if (!back) { EXPECT_EQ(ckpt_frame_slot(f, 1), nullptr); } break;
        case 1: if (!back) { EXPECT_EQ(ckpt_frame_needs(f, 2), 0); } break;
        case 2: if (!back) { EXPECT_EQ(ckpt_frame_output(f, 1), nullptr); } break;
        case 3: if (!back) { EXPECT_EQ(ckpt_frame_needs_output(f, 5), 0); } break;
        case 4: if (!back) { EXPECT_EQ(ckpt_frame_input(f, 1), nullptr); } break;
        case 5: if (!back) ckpt_frame_random(f, 65536, &p); break;
        case 6: if (back) { EXPECT_EQ(ckpt_frame_output_grad(f, 3), nullptr); } break;
        case 7: if (back) { EXPECT_EQ(ckpt_frame_input_grad(f, 9, &add), nullptr); EXPECT_EQ(add, 0); } break;
      }
    };
    const Step got = s.step(net);
    EXPECT_EQ(got.status, which == 5 ? CKPT_ERROR_OVERFLOW : CKPT_ERROR_INVALID_ARGUMENT) << which << ": " << got.text;
    EXPECT_NE(got.text.find(words[which]), std::string::npos) << got.text;
  }
}

TEST(TapeErrors, BudgetTooSmallForAnUnknownStep) {
  Net net;
  uint32_t x = net.input(64, true);
  for (uint32_t k = 0; k < 4; ++k) x = net.then<Mlp>(x, "mlp", size_t{64}, k);
  x = net.then<Scratchy>(x, "scratchy", size_t{64}, size_t{16});
  net.root(net.then<Loss>(x, "loss", size_t{64}, true));
  Options o;
  o.budget = 2048;  // the scratch of the last one's backward alone is 4096
  Session s(o);
  const Step got = s.step(net, 0, 0, false);
  EXPECT_EQ(got.status, CKPT_ERROR_BUDGET);
  for (const char *word : {"'scratchy'", "number 4", "2048", "4352"}) EXPECT_NE(got.text.find(word), std::string::npos) << word << ": " << got.text;
  EXPECT_EQ(s.log.firsts, 4u) << "refused at the segment where it becomes impossible";
}

TEST(TapeErrors, GradientWithoutABackward) {
  Net net;
  auto *layer = net.make<Custom>("one way");
  layer->has_backward = false;
  layer->spec.outputs = {{.name = "y", .bytes = floats(4)}};
  layer->spec.input_flags = {0};
  layer->run_forward = [](View &f) { f.output(0); };
  net.root(net.add(layer, {net.input(4, true)}), std::vector<float>(4, 1.0f));
  Session s({});
  const Step got = s.step(net);
  EXPECT_EQ(got.status, CKPT_ERROR_STATE);
  EXPECT_NE(got.text.find("'one way'"), std::string::npos) << got.text;
  EXPECT_NE(got.text.find("no backward"), std::string::npos) << got.text;
}

TEST(TapeErrors, RunWithoutAForward) {
  Net net;
  auto *layer = net.make<Custom>("by hand");
  layer->replayable = false;
  Session s({});
  ckpt_call c = s.call(layer, {});
  REFUSED(ckpt_segment_run(s.tape, s.segment(layer), &c, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "'by hand'", "ckpt_segment_begin");
}

TEST(TapeErrors, NestedUseIsBusy) {
  Net net = little();
  Session s({});
  Options o;
  Session other(o, s.arena);
  ckpt_status status[6] = {};
  s.log.inside = [&](ckpt_frame *f, Layer &layer) {
    const void *data = nullptr;
    const std::vector<ckpt_buffer> in{s.buffers[0]};
    ckpt_call c = s.call(&layer, in);
    ckpt_buffer out = 0;
    ckpt_tape_stats stats{};
    stats.struct_size = sizeof stats;
    status[0] = ckpt_tape_read(s.tape, s.buffers[0], &data);
    status[1] = ckpt_segment_run(s.tape, s.segment(&layer), &c, &out);
    status[2] = ckpt_backward(s.tape, &out, nullptr, 1, 0);
    status[3] = ckpt_tape_begin(other.tape, 0, 0);
    status[4] = ckpt_arena_alloc(s.arena, 16, 0) == nullptr ? ckpt_last_status() : CKPT_OK;
    status[5] = ckpt_segment_end(f, CKPT_OK, &out);
    EXPECT_EQ(ckpt_tape_get_stats(s.tape, &stats), CKPT_OK);
  };
  for (int at = 0; at < 2; ++at) {
    const Result expected = plain(net, 42, static_cast<uint64_t>(at));
    const Step got = s.step(net, 0, 0, false);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected), "");
    for (int k = 0; k < 5; ++k) EXPECT_EQ(status[k], CKPT_ERROR_BUSY) << k;
    EXPECT_NE(status[5], CKPT_OK) << "the frame of a callback ends with its callback";
  }
}

TEST(TapeErrors, OutArgumentsOfStatsAndStep) {
  Session s({});
  ckpt_tape_stats stats{};
  REFUSED(ckpt_tape_get_stats(s.tape, &stats), CKPT_ERROR_STRUCT_SIZE, "out_stats");
  REFUSED(ckpt_tape_get_stats(s.tape, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_stats");
  REFUSED(ckpt_tape_get_stats(nullptr, &stats), CKPT_ERROR_INVALID_ARGUMENT, "tape");
  REFUSED(ckpt_tape_get_step(s.tape, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_step");
  REFUSED(ckpt_tape_chain(s.tape, 1, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_chain");
  REFUSED(ckpt_tape_plan(s.tape, 1, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_plan");
  REFUSED(ckpt_tape_adopt(s.tape, 1, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "plan");
  REFUSED(ckpt_tape_detach(s.tape, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_recording");
  REFUSED(ckpt_tape_read(s.tape, 1, nullptr), CKPT_ERROR_INVALID_ARGUMENT, "out_data");
  // A longer struct than the library's gets the library's part.
  struct Longer {
    ckpt_tape_stats stats;
    uint64_t more;
  } longer{};
  longer.stats.struct_size = sizeof longer;
  longer.more = 77;
  EXPECT_EQ(ckpt_tape_get_stats(s.tape, &longer.stats), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(longer.more, 77u);
  EXPECT_EQ(longer.stats.budget_bytes, s.options.capacity);
}

}  // namespace
