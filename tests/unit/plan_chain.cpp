// Graphs from chain descriptions: sizes, costs, defaults, and every refusal.
#include "plan/chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace ckpt;
using namespace ckpt::plan;

constexpr size_t kBig = size_t{1} << 60;

ckpt_slot slot(const char *name, size_t bytes, double seconds) {
  ckpt_slot s{};
  s.name = name;
  s.bytes = bytes;
  s.cost_seconds = seconds;
  return s;
}

ckpt_output output(const char *name, size_t bytes) {
  ckpt_output o{};
  o.name = name;
  o.bytes = bytes;
  return o;
}

// Two slots, one output; 7 seconds, of which the slots take 1 and 2.
struct Builder {
  std::vector<ChainSegment> segments;
  ckpt_chain_desc desc{};

  explicit Builder(uint32_t n = 1) {
    desc.struct_size = sizeof desc;
    for (uint32_t i = 0; i < n; ++i) {
      ChainSegment s{};
      s.desc.name = "block";
      s.desc.forward_seconds = 7;
      s.desc.backward_seconds = 10;
      s.slots = {slot("a", 10, 1), slot("b", 20, 2)};
      s.outputs = {output("out", 5)};
      segments.push_back(s);
    }
  }
  ChainSegment &first() { return segments.front(); }
  Result<Graph> make() {
    for (ChainSegment &s : segments) {
      s.desc.slots = s.slots.data();
      s.desc.slot_count = static_cast<uint32_t>(s.slots.size());
      s.desc.outputs = s.outputs.data();
      s.desc.output_count = static_cast<uint32_t>(s.outputs.size());
    }
    desc.segment_count = static_cast<uint32_t>(segments.size());
    return make_chain("f", desc, segments);
  }
  void refused(Status code, const char *part) {
    Result<Graph> g = make();
    EXPECT_EQ(g.status(), code) << last_error();
    EXPECT_NE(std::string(last_error()).find(part), std::string::npos) << last_error();
  }
};

template <class F>
void refused(F &&change, Status code, const char *part) {
  Builder b(2);
  change(b);
  b.refused(code, part);
}

TEST(Chain, DefaultsFollowTheHeader) {
  Builder b(3);
  Result<Graph> g = b.make();
  ASSERT_TRUE(g.ok()) << last_error();
  EXPECT_EQ(g->rule.alignment_bytes, 256u);
  EXPECT_EQ(g->rule.guard_bytes, 0u);
  EXPECT_FALSE(g->root_grads_in_arena);
  ASSERT_EQ(g->value_count(), 4u);
  ASSERT_EQ(g->inputs.size(), 1u);
  EXPECT_TRUE(g->values[0].caller);
  EXPECT_EQ(g->values[0].bytes, 0u);
  EXPECT_EQ(g->values[0].grad, CKPT_GRAD_NONE);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(g->inputs_of(i).size(), 1u);
    EXPECT_EQ(g->inputs_of(i)[0], i);
    EXPECT_EQ(g->seconds_of(i, 0), 1);
    EXPECT_EQ(g->seconds_of(i, 1), 2);
    EXPECT_EQ(g->seconds_of(i, 2), 4) << "what the slots leave";
    EXPECT_TRUE(g->nodes[i].shape->item(1).reads.has(0)) << "reads NULL: every earlier slot";
    EXPECT_EQ(g->nodes[i].shape->item(2).reads, Bits::first(2));
    EXPECT_TRUE(g->nodes[i].shape->backward_reads_input(0));
    EXPECT_EQ(g->values[i + 1].grad, CKPT_GRAD_ARENA);
    EXPECT_EQ(g->values[i + 1].grad_bytes, 5u);
  }
  EXPECT_EQ(g->forward_seconds(), 21);
  EXPECT_EQ(g->backward_seconds(), 30);
}

TEST(Chain, FieldsArriveWhereTheyBelong) {
  Builder b;
  const uint32_t none = 0, inputs[] = {1, 0, 1}, flags[] = {CKPT_INPUT_BACKWARD_IGNORES, 0, CKPT_INPUT_NO_GRAD};
  const ckpt_chain_input ins[] = {{8, 0, CKPT_MEMORY_ARENA, CKPT_GRAD_CALLER}, {16, 4, CKPT_MEMORY_CALLER, CKPT_GRAD_ARENA}};
  b.desc.inputs = ins;
  b.desc.input_count = 2;
  b.desc.alignment_bytes = 1;
  b.desc.output_grad = CKPT_GRAD_ARENA;
  ChainSegment &s = b.first();
  s.desc.inputs = inputs;
  s.desc.input_count = 3;
  s.desc.input_flags = flags;
  s.desc.flags = CKPT_CHAIN_SEGMENT_WHOLE;
  s.desc.forward_scratch_bytes = 100;
  s.desc.backward_scratch_bytes = 200;
  s.slots[1].reads = &none;  // count 0: from the inputs alone
  s.slots[1].flags = CKPT_SLOT_KEEP;
  s.slots[1].group = 3;
  s.outputs[0].grad_bytes = 50;
  s.outputs[0].in_place_input = 2;
  s.outputs[0].flags = CKPT_OUTPUT_BACKWARD_READS;
  s.outputs.push_back(output("loss", 4));
  s.outputs[1].memory = &b;
  s.outputs[1].flags = CKPT_OUTPUT_NO_GRAD | CKPT_OUTPUT_COST_GIVEN;
  s.outputs[1].cost_seconds = 0.5;
  Result<Graph> g = b.make();
  ASSERT_TRUE(g.ok()) << last_error();
  const Shape &shape = *g->nodes[0].shape;
  EXPECT_EQ(g->rule.alignment_bytes, 1u);
  EXPECT_TRUE(g->root_grads_in_arena);
  EXPECT_FALSE(g->values[0].caller);
  EXPECT_EQ(g->values[0].grad_bytes, 8u);
  EXPECT_EQ(g->values[0].grad, CKPT_GRAD_CALLER);
  EXPECT_TRUE(g->values[1].caller);
  EXPECT_EQ(g->values[1].grad_bytes, 4u);
  EXPECT_EQ(g->inputs_of(0)[0], 1u);
  EXPECT_EQ(g->inputs_of(0)[2], 1u);
  EXPECT_FALSE(shape.backward_reads_input(0));
  EXPECT_EQ(shape.input_flags(2), static_cast<uint32_t>(CKPT_INPUT_NO_GRAD));
  EXPECT_TRUE(shape.whole());
  EXPECT_EQ(shape.forward_scratch(), 100u);
  EXPECT_EQ(shape.backward_scratch(), 200u);
  EXPECT_TRUE(shape.item(1).reads.empty());
  EXPECT_TRUE(shape.keep().has(1));
  EXPECT_EQ(shape.item(1).group, 3u);
  EXPECT_EQ(shape.item(2).in_place_input, 2u);
  EXPECT_TRUE(shape.backward_outputs().has(2));
  EXPECT_EQ(g->values[2].grad_bytes, 50u);
  EXPECT_TRUE(g->values[3].caller);
  EXPECT_EQ(g->values[3].grad, CKPT_GRAD_NONE);
  EXPECT_EQ(g->seconds_of(0, 2), 3.5);
  EXPECT_EQ(g->seconds_of(0, 3), 0.5);
}

TEST(Chain, AloneMembersCostNothingInTheWhole) {
  Builder b;
  b.first().slots[0].group = b.first().slots[1].group = 1;
  b.first().slots[1].flags = CKPT_SLOT_ALONE;
  b.first().slots[1].cost_seconds = 100;
  Result<Graph> g = b.make();
  ASSERT_TRUE(g.ok()) << last_error();
  EXPECT_EQ(g->seconds_of(0, 2), 6);
  EXPECT_EQ(g->forward_seconds(), 7);
}

TEST(Chain, RoundedCostsAreNoError) {
  Builder b;
  b.first().slots = {slot("a", 1, 0.1), slot("b", 1, 0.2)};
  b.first().desc.forward_seconds = 0.3;  // 0.1 + 0.2 is a little more
  Result<Graph> g = b.make();
  ASSERT_TRUE(g.ok()) << last_error();
  EXPECT_EQ(g->seconds_of(0, 2), 0);
}

TEST(Chain, HashIsOfStructureAndSizes) {
  const auto hash = [](auto &&change) {
    Builder b(2);
    change(b);
    Result<Graph> g = b.make();
    EXPECT_TRUE(g.ok()) << last_error();
    return g->hash();
  };
  const uint64_t plain = hash([](Builder &) {});
  EXPECT_EQ(hash([](Builder &b) { b.first().desc.forward_seconds = 8; }), plain) << "seconds are not in it";
  EXPECT_EQ(hash([](Builder &b) { b.first().desc.backward_seconds = 8; }), plain);
  const uint32_t zero[] = {0, 0};
  std::vector<uint64_t> seen = {plain};
  const auto differs = [&](auto &&change) {
    const uint64_t h = hash(change);
    for (uint64_t other : seen) EXPECT_NE(h, other) << seen.size();
    seen.push_back(h);
  };
  differs([](Builder &b) { b.first().slots[0].bytes = 11; });
  differs([](Builder &b) { b.first().outputs[0].bytes = 6; });
  differs([](Builder &b) { b.first().outputs[0].grad_bytes = 6; });
  differs([](Builder &b) { b.first().slots[0].name = "c"; });
  differs([](Builder &b) { b.first().desc.name = "c"; });
  differs([&](Builder &b) { b.first().slots[1].reads = zero; });
  differs([](Builder &b) { b.first().slots[0].flags = CKPT_SLOT_KEEP; });
  differs([](Builder &b) { b.first().desc.forward_scratch_bytes = 1; });
  differs([](Builder &b) { b.first().desc.backward_scratch_bytes = 1; });
  differs([](Builder &b) { b.first().desc.flags = CKPT_CHAIN_SEGMENT_WHOLE; });
  differs([](Builder &b) { b.desc.alignment_bytes = 64; });
  differs([](Builder &b) { b.desc.output_grad = CKPT_GRAD_ARENA; });
  differs([](Builder &b) { b.segments.pop_back(); });
  differs([&](Builder &b) {
    b.segments[1].desc.inputs = zero;
    b.segments[1].desc.input_count = 1;
  });
}

TEST(Chain, RefusesBadDescs) {
  const ckpt_chain_input in[] = {{4, 0, 0, 0}};
  refused([](Builder &b) { b.segments.clear(); }, CKPT_ERROR_INVALID_ARGUMENT, "desc.segment_count is 0, expected at least 1");
  refused([](Builder &b) { b.desc.input_count = 2; }, CKPT_ERROR_INVALID_ARGUMENT, "desc.inputs is NULL and desc.input_count is 2");
  refused([&](Builder &b) { b.desc.inputs = in; }, CKPT_ERROR_INVALID_ARGUMENT, "desc.input_count is 0, expected at least 1");
  refused([](Builder &b) { b.desc.output_grad = 3; }, CKPT_ERROR_INVALID_ARGUMENT, "desc.output_grad is 3");
  refused([](Builder &b) { b.desc.flags = 4; }, CKPT_ERROR_INVALID_ARGUMENT, "desc.flags is 0x4, expected 0");
  refused([](Builder &b) { b.desc.alignment_bytes = 48; }, CKPT_ERROR_INVALID_ARGUMENT, "desc.alignment_bytes is 48, expected a power of two");
  refused([](Builder &b) { b.desc.alignment_bytes = size_t{1} << 61; }, CKPT_ERROR_INVALID_ARGUMENT, "desc.alignment_bytes");
}

TEST(Chain, RefusesBadInputs) {
  static ckpt_chain_input in[1];
  const auto with = [](ckpt_chain_input value) {
    return [value](Builder &b) {
      in[0] = value;
      b.desc.inputs = in;
      b.desc.input_count = 1;
    };
  };
  refused(with({4, 0, 2, 0}), CKPT_ERROR_INVALID_ARGUMENT, "desc.inputs[0].memory is 2");
  refused(with({4, 0, 0, 3}), CKPT_ERROR_INVALID_ARGUMENT, "desc.inputs[0].grad is 3");
  refused(with({kBig + 1, 0, 0, 0}), CKPT_ERROR_OVERFLOW, "desc.inputs[0].bytes is 1152921504606846977");
  refused(with({4, kBig + 1, 0, 0}), CKPT_ERROR_OVERFLOW, "desc.inputs[0].grad_bytes");
}

TEST(Chain, RefusesBadSegments) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const uint32_t two[] = {2}, eight[] = {8};
  constexpr Status invalid = CKPT_ERROR_INVALID_ARGUMENT;
  refused([](Builder &b) { b.segments[1].desc.name = nullptr; }, invalid, "desc.segments[1].name is NULL");
  refused([](Builder &b) { b.segments[1].desc.name = ""; }, invalid, "desc.segments[1].name is empty");
  refused([&](Builder &b) { b.first().desc.forward_seconds = nan; }, invalid, "segment 'block': forward_seconds is nan, expected 0");
  refused([&](Builder &b) { b.first().desc.backward_seconds = inf; }, invalid, "segment 'block': backward_seconds is inf, expected 0");
  refused([](Builder &b) { b.first().desc.backward_seconds = -1; }, invalid, "backward_seconds is -1");
  refused([](Builder &b) { b.first().outputs.clear(); }, invalid, "output_count is 0, expected at least 1");
  refused([](Builder &b) { b.first().desc.flags = 6; }, invalid, "flags is 0x6");
  refused([](Builder &b) { b.first().desc.forward_scratch_bytes = kBig + 1; }, CKPT_ERROR_OVERFLOW, "forward_scratch_bytes is 1152921504606846977");
  refused([](Builder &b) { b.first().desc.backward_scratch_bytes = kBig + 1; }, CKPT_ERROR_OVERFLOW, "backward_scratch_bytes");
  refused([](Builder &b) { b.first().desc.input_count = 2; }, invalid, "inputs is NULL and input_count is 2");
  refused([&](Builder &b) { b.first().desc.input_flags = two; }, invalid, "input_flags is given and input_count is 0");
  refused(
      [&](Builder &b) {
        b.segments[1].desc.inputs = two;
        b.segments[1].desc.input_count = 1;
      },
      invalid, "inputs[0] is boundary 2, expected one that is made before (below 2)");
  refused(
      [&](Builder &b) {
        b.first().desc.input_count = 1;
        b.first().desc.input_flags = eight;
      },
      invalid, "input 0 has unknown flags 0x8");
}

TEST(Chain, RefusesBadSlotsAndOutputs) {
  static const uint32_t zero[] = {0}, five[] = {5};
  constexpr Status invalid = CKPT_ERROR_INVALID_ARGUMENT;
  refused([](Builder &b) { b.first().slots[1].name = nullptr; }, invalid, "segment 'block': name of slot 1 is NULL");
  refused([](Builder &b) { b.first().slots[1].name = ""; }, invalid, "name of slot 1 is empty");
  refused([](Builder &b) { b.first().slots[1].name = "a"; }, invalid, "two slots or outputs are named 'a'");
  refused([](Builder &b) { b.first().outputs[0].name = "a"; }, invalid, "two slots or outputs are named 'a'");
  refused([](Builder &b) { b.first().outputs[0].name = nullptr; }, invalid, "name of output 0 is NULL");
  refused([](Builder &b) { b.first().slots[0].bytes = kBig + 1; }, CKPT_ERROR_OVERFLOW, "slot 'a': bytes is 1152921504606846977, expected at most 1152921504606846976");
  refused([](Builder &b) { b.first().outputs[0].bytes = kBig + 1; }, CKPT_ERROR_OVERFLOW, "output 'out': bytes is");
  refused([](Builder &b) { b.first().outputs[0].grad_bytes = kBig + 1; }, CKPT_ERROR_OVERFLOW, "output 'out': grad_bytes is");
  refused([](Builder &b) { b.first().slots[0].flags = 64; }, invalid, "slot 'a' has unknown flags 0x40");
  refused([](Builder &b) { b.first().outputs[0].flags = 16; }, invalid, "output 'out' has unknown flags 0x10");
  refused([](Builder &b) { b.first().slots[0].reserved = 9; }, invalid, "slot 'a': reserved is 9, expected 0");
  refused([](Builder &b) { b.first().slots[1].read_count = 1; }, invalid, "slot 'b': reads is NULL and read_count is 1");
  refused(
      [](Builder &b) {
        b.first().slots[0].reads = zero;
        b.first().slots[0].read_count = 1;
      },
      invalid, "slot 'a': reads[0] is 0, expected an earlier slot (below 0)");
  refused(
      [](Builder &b) {
        b.first().outputs[0].reads = five;
        b.first().outputs[0].read_count = 1;
      },
      invalid, "output 'out': reads[0] is 5, expected an earlier slot (below 2)");
  refused([](Builder &b) { b.first().outputs[0].in_place_input = 2; }, invalid, "in_place_input 2");
  refused([](Builder &b) { b.first().slots[0].flags = CKPT_SLOT_KEEP | CKPT_SLOT_RECOMPUTE; }, CKPT_ERROR_CONFLICT, "marked KEEP and RECOMPUTE");
  refused(
      [](Builder &b) {
        b.first().slots[1].flags = CKPT_SLOT_TRANSIENT;
        b.first().outputs[0].reads = zero;
        b.first().outputs[0].read_count = 1;
      },
      invalid, "slot 'b' is TRANSIENT");
}

TEST(Chain, RefusesBadCosts) {
  constexpr Status invalid = CKPT_ERROR_INVALID_ARGUMENT;
  refused([](Builder &b) { b.first().slots[0].cost_seconds = -1; }, invalid, "slot 'a': cost_seconds is -1");
  refused([](Builder &b) { b.first().slots[0].cost_seconds = std::nan(""); }, invalid, "slot 'a': cost_seconds is nan");
  refused([](Builder &b) { b.first().slots[0].cost_seconds = 5.001; }, invalid, "the slots' cost_seconds are 7.001 together, expected at most forward_seconds, which is 7");
  refused([](Builder &b) { b.first().outputs[0].cost_seconds = 1; }, invalid, "output 'out': cost_seconds is 1, expected 0 without CKPT_OUTPUT_COST_GIVEN");
  refused(
      [](Builder &b) {
        b.first().outputs[0].flags = CKPT_OUTPUT_COST_GIVEN;
        b.first().outputs[0].cost_seconds = 5;
      },
      invalid, "slots and outputs are 8 together, expected at most forward_seconds, which is 7");
  refused(
      [](Builder &b) {
        b.first().outputs[0].flags = CKPT_OUTPUT_COST_GIVEN;
        b.first().outputs[0].cost_seconds = 3;
      },
      invalid, "slots and outputs are 6 together, expected forward_seconds, which is 7");
  refused(
      [](Builder &b) {
        b.first().outputs[0].flags = CKPT_OUTPUT_COST_GIVEN;
        b.first().outputs[0].cost_seconds = -3;
      },
      invalid, "output 'out': cost_seconds is -3");
}

TEST(Chain, RefusesTotalsThatDoNotFit) {
  refused(
      [](Builder &b) {
        for (ckpt_slot &s : b.first().slots) s.bytes = kBig;
        b.segments[1].slots[0].bytes = kBig;
        b.segments[1].slots[1].bytes = kBig;
      },
      CKPT_ERROR_OVERFLOW, "more than 4611686018427387903 bytes together");
  Builder fits;
  fits.first().slots[0].bytes = kBig;
  EXPECT_TRUE(fits.make().ok()) << last_error();
}

TEST(Chain, RefusesMoreItemsThanFit) {
  refused(
      [](Builder &b) {
        static std::vector<std::string> names;
        names.clear();
        for (int k = 0; k < 256; ++k) names.push_back("s" + std::to_string(k));
        b.first().slots.clear();
        for (const std::string &n : names) b.first().slots.push_back(slot(n.c_str(), 1, 0));
      },
      CKPT_ERROR_INVALID_ARGUMENT, "256 slots and 1 outputs, at most 256 together");
}

TEST(Chain, ZeroSecondsAndZeroBytesAreFine) {
  Builder b(3);
  for (ChainSegment &s : b.segments) {
    s.desc.forward_seconds = s.desc.backward_seconds = 0;
    s.slots = {slot("a", 0, 0)};
    s.outputs[0].bytes = 0;
  }
  Result<Graph> g = b.make();
  ASSERT_TRUE(g.ok()) << last_error();
  EXPECT_EQ(g->forward_seconds(), 0);
  Builder no_slots;
  no_slots.first().slots.clear();
  EXPECT_TRUE(no_slots.make().ok()) << last_error();
}

}  // namespace
