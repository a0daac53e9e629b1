// What a shape refuses, and what it derives from flags.
#include "plan/shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace ckpt;
using namespace ckpt::plan;

Item item(std::string name, std::vector<uint32_t> reads = {}, uint32_t flags = 0, uint32_t group = 0) {
  Item it;
  it.name = std::move(name);
  it.bytes = 8;
  it.cost_seconds = 1;
  it.flags = flags;
  it.group = group;
  for (uint32_t r : reads) it.reads.set(r);
  return it;
}

struct Parts {
  std::vector<Item> slots{item("a"), item("b", {0})}, outputs{item("o", {1})};
  std::vector<uint32_t> input_flags{0};
  size_t forward_scratch = 0, backward_scratch = 0;
  bool replayable = true, whole = false;

  Result<Shape> create() const { return Shape::create("seg", slots, outputs, input_flags, forward_scratch, backward_scratch, replayable, whole); }
};

// Refused with this code, and a text that names the segment and holds `part`.
void refused(const Parts &p, Status code, const std::string &part) {
  auto got = p.create();
  ASSERT_FALSE(got.ok()) << "accepted, expected: " << part;
  EXPECT_EQ(got.status(), code) << last_error();
  const std::string text = last_error();
  EXPECT_NE(text.find("'seg'"), std::string::npos) << text;
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

Bits bits(std::vector<uint32_t> members) {
  Bits b;
  for (uint32_t k : members) b.set(k);
  return b;
}

TEST(Shape, AcceptsTheParts) {
  auto got = Parts{}.create();
  ASSERT_TRUE(got.ok()) << last_error();
  EXPECT_EQ(got->slot_count(), 2u);
  EXPECT_EQ(got->output_count(), 1u);
  EXPECT_EQ(got->item_count(), 3u);
  EXPECT_EQ(got->input_count(), 1u);
}

TEST(Shape, AcceptsNothingAtAllButAnOutput) {
  Parts p;
  p.slots.clear();
  p.outputs = {item("o")};
  p.input_flags.clear();
  EXPECT_TRUE(p.create().ok()) << last_error();
}

TEST(Shape, RefusesTooManyItems) {
  Parts p;
  p.slots.clear();
  for (uint32_t k = 0; k < 255; ++k) p.slots.push_back(item("s" + std::to_string(k)));
  p.outputs = {item("o")};
  EXPECT_TRUE(p.create().ok()) << last_error();  // 256 together
  p.slots.push_back(item("s255"));
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "256 slots and 1 outputs");
}

TEST(Shape, RefusesNames) {
  Parts p;
  p.slots[1].name = "";
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "slot 1 has an empty name");
  p = Parts{};
  p.outputs[0].name = "";
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "output 0 has an empty name");
  p = Parts{};
  p.slots[1].name = "a";
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "named 'a'");
  p = Parts{};
  p.outputs[0].name = "b";
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "named 'b'");
}

TEST(Shape, RefusesUnknownFlags) {
  Parts p;
  p.slots[0].flags = 64;
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "slot 'a' has unknown flags 0x40");
  p = Parts{};
  p.outputs[0].flags = 16;
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "output 'o' has unknown flags 0x10");
  p = Parts{};
  p.input_flags = {0, 8};
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "input 1 has unknown flags 0x8");
}

TEST(Shape, RefusesCosts) {
  for (const double cost : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e19}) {
    Parts p;
    p.slots[0].cost_seconds = cost;
    refused(p, CKPT_ERROR_INVALID_ARGUMENT, "slot 'a' has cost_seconds");
    p = Parts{};
    p.outputs[0].cost_seconds = cost;
    refused(p, CKPT_ERROR_INVALID_ARGUMENT, "output 'o' has cost_seconds");
  }
}

TEST(Shape, RefusesReadsOfWhatIsNotThere) {
  Parts p;
  p.slots[0].reads = bits({0});  // itself
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "slot 'a' reads slot 0");
  p = Parts{};
  p.slots[0].reads = bits({1});  // a later one
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "slot 'a' reads slot 1");
  p = Parts{};
  p.outputs[0].reads = bits({2});  // an output
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "output 'o' reads slot 2");
  p = Parts{};
  p.outputs[0].reads = bits({255});
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "below 2");
}

TEST(Shape, RefusesContradictions) {
  Parts p;
  p.slots[0].flags = CKPT_SLOT_KEEP | CKPT_SLOT_RECOMPUTE;
  refused(p, CKPT_ERROR_CONFLICT, "'a' is marked KEEP and RECOMPUTE");
  p = Parts{};
  p.slots[1].flags = CKPT_SLOT_RECOMPUTE;
  EXPECT_TRUE(p.create().ok()) << last_error();
  p.replayable = false;
  refused(p, CKPT_ERROR_CONFLICT, "'b' is marked RECOMPUTE, but");
  p = Parts{};
  p.slots[1].flags = CKPT_SLOT_ALONE;
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "'b' is marked ALONE");
}

TEST(Shape, RefusesInPlaceOverNothing) {
  Parts p;
  p.outputs[0].in_place_input = 1;
  EXPECT_TRUE(p.create().ok()) << last_error();
  p.outputs[0].in_place_input = 2;
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "in_place_input 2, expected 0 to 1");
  p.input_flags.clear();
  p.outputs[0].in_place_input = 1;
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "in_place_input 1, expected 0 to 0");
  p = Parts{};
  p.outputs[0].in_place_input = 1;
  p.outputs[0].caller_memory = true;
  refused(p, CKPT_ERROR_CONFLICT, "'o' has memory of the caller's");
}

TEST(Shape, RefusesAGroupOfWhichSomeAreKept) {
  Parts p;
  p.slots[0].group = p.slots[1].group = 7;
  p.slots[0].flags = CKPT_SLOT_KEEP;
  refused(p, CKPT_ERROR_CONFLICT, "group 7 has 'a' marked KEEP and 'b' not");
  p.slots[1].flags = CKPT_SLOT_KEEP;
  EXPECT_TRUE(p.create().ok()) << last_error();
  p.outputs[0].group = 7;
  refused(p, CKPT_ERROR_CONFLICT, "group 7 has '");
  p.outputs[0].flags = CKPT_OUTPUT_KEEP;
  EXPECT_TRUE(p.create().ok()) << last_error();
}

TEST(Shape, RefusesASlotThatNobodyReads) {
  Parts p;
  p.slots[0].flags = CKPT_SLOT_TRANSIENT;  // b reads it
  EXPECT_TRUE(p.create().ok()) << last_error();
  p.slots[1].flags = CKPT_SLOT_TRANSIENT;  // the output reads it
  EXPECT_TRUE(p.create().ok()) << last_error();
  p.outputs[0].reads = Bits{};
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "'a' is TRANSIENT and neither");
  p.slots[0].flags = 0;
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "'b' is TRANSIENT and neither");
  p.slots[0].group = p.slots[1].group = 1;  // made with a by one kernel
  EXPECT_TRUE(p.create().ok()) << last_error();
}

TEST(Shape, DerivesSetsFromFlags) {
  Parts p;
  p.slots = {item("t", {}, CKPT_SLOT_TRANSIENT), item("k", {0}, CKPT_SLOT_KEEP), item("r", {0}, CKPT_SLOT_RECOMPUTE), item("c", {}, CKPT_SLOT_CONSUMED), item("tk", {}, CKPT_SLOT_TRANSIENT | CKPT_SLOT_KEEP)};
  p.outputs = {item("o", {4}, CKPT_OUTPUT_BACKWARD_READS), item("k2", {}, CKPT_OUTPUT_KEEP), item("mine")};
  p.outputs[2].caller_memory = true;
  p.input_flags = {0, CKPT_INPUT_BACKWARD_IGNORES, CKPT_INPUT_NO_GRAD};
  auto s = p.create();
  ASSERT_TRUE(s.ok()) << last_error();
  EXPECT_EQ(s->needed(), bits({1, 2, 3}));
  EXPECT_EQ(s->backward_outputs(), bits({5}));
  EXPECT_EQ(s->keep(), bits({1, 4, 6}));
  EXPECT_EQ(s->again(), bits({2}));
  EXPECT_EQ(s->consumed(), bits({3}));
  EXPECT_EQ(s->caller(), bits({7}));
  EXPECT_EQ(s->slots(), bits({0, 1, 2, 3, 4}));
  EXPECT_EQ(s->outputs(), bits({5, 6, 7}));
  EXPECT_TRUE(s->backward_reads_input(0));
  EXPECT_FALSE(s->backward_reads_input(1));
  EXPECT_TRUE(s->backward_reads_input(2));
}

TEST(Shape, WhatCannotRunAgainIsMadeOnce) {
  Parts p;
  p.slots[0].flags = CKPT_SLOT_TRANSIENT;
  p.replayable = false;
  auto s = p.create();
  ASSERT_TRUE(s.ok()) << last_error();
  EXPECT_EQ(s->keep(), bits({1, 2}));
}

TEST(Shape, HashesTellStructureAndSizesApart) {
  const uint64_t hash = Parts{}.create()->hash(), structure = Parts{}.create()->structure_hash();
  const auto with = [&](auto &&change) {
    Parts p;
    change(p);
    auto s = p.create();
    EXPECT_TRUE(s.ok()) << last_error();
    return std::move(*s);
  };
  EXPECT_EQ(with([](Parts &) {}).hash(), hash);
  EXPECT_EQ(with([](Parts &p) { p.slots[0].cost_seconds = 5; }).hash(), hash);
  for (const Shape &s : {with([](Parts &p) { p.slots[0].bytes = 9; }), with([](Parts &p) { p.outputs[0].grad_bytes = 9; }), with([](Parts &p) { p.forward_scratch = 1; }),
                         with([](Parts &p) { p.backward_scratch = 1; })}) {
    EXPECT_NE(s.hash(), hash);
    EXPECT_EQ(s.structure_hash(), structure);
  }
  for (const Shape &s : {with([](Parts &p) { p.slots[0].name = "c"; }), with([](Parts &p) { p.slots[1].reads = Bits{}; }), with([](Parts &p) { p.slots[0].flags = CKPT_SLOT_KEEP; }),
                         with([](Parts &p) { p.slots[0].group = 1; }), with([](Parts &p) { p.outputs[0].in_place_input = 1; }), with([](Parts &p) { p.outputs[0].caller_memory = true; }),
                         with([](Parts &p) { p.input_flags = {1}; }), with([](Parts &p) { p.input_flags = {0, 0}; }), with([](Parts &p) { p.replayable = false; }),
                         with([](Parts &p) { p.whole = true; }), with([](Parts &p) { std::swap(p.slots[1], p.outputs[0]), p.slots[1].reads = p.outputs[0].reads = bits({0}); })}) {
    EXPECT_NE(s.hash(), hash);
    EXPECT_NE(s.structure_hash(), structure);
  }
}

// One kernel makes a group: nothing that it reads may be computed from it.
TEST(Shape, GroupsThatWaitForThemselves) {
  Parts p;
  p.slots = {item("a", {}, 0, 1), item("x", {0}), item("b", {1}, 0, 1)};
  p.outputs = {item("o", {0, 1, 2})};
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "group 1: 'b' reads 'x', which is computed from the group itself");
  p.slots[2] = item("b", {0}, 0, 1);  // beside x, not through it
  EXPECT_TRUE(p.create().ok()) << last_error();

  // Through an output, and through another group; a group that only waits for such a one is not blamed.
  p.slots = {item("a", {}, 0, 1), item("x", {0})};
  p.outputs = {item("o", {1}, 0, 1)};
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "'o' reads 'x'");
  p.slots = {item("a", {}, 0, 1), item("x", {0}, 0, 2), item("b", {1}, 0, 1), item("y", {}, 0, 2), item("c", {2}, 0, 3)};
  p.outputs = {item("o", {0, 1, 2, 3, 4})};
  refused(p, CKPT_ERROR_INVALID_ARGUMENT, "group 2: 'x' reads 'a'");  // either of the two would do, c would not
}

}  // namespace
