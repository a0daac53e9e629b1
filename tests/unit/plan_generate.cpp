// Programs by hand: what is written for small graphs, action by action, and what it takes.
#include "plan/generate.h"

#include <gtest/gtest.h>

#include <bit>

#include "plan/make_plan.h"
#include "plan/tighten.h"
#include "unit/plan_chains.h"

namespace ckpt::plan {
namespace {

using testing::ChainOf;
using testing::Segment;
using testing::text_of;

Policy policy(const Graph &g, Again again, bool slots, bool values) {
  Policy p;
  p.again = again;
  for (const Node &n : g.nodes) p.keep_slots.push_back(slots ? n.shape->slots() : Bits{});
  p.keep_value.assign(g.value_count(), values);
  return p;
}

struct Ran {
  Program program;
  Simulation s;
};

Ran step(const Graph &g, const Policy &p) {
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  Result<Program> program = write_step(g, gradients, p);
  EXPECT_TRUE(program.ok()) << last_error();
  Ran run{*program, {}};
  EXPECT_EQ(simulate_step(g, gradients, run.program, arena::Placer(), &run.s), CKPT_OK) << last_error();
  return run;
}

// Three segments: slot "a" of 3 bytes, 1 s; an output of 2 bytes, 1 s, made from it; backward 2 s, reads the slot and the input.
// The input is the caller's, as is the last output's gradient.
const Segment kPlain;

TEST(PlanGenerate, EverythingKept) {
  const ChainOf g(3, kPlain);
  const Ran r = step(g, policy(g, Again::boundaries, true, true));
  EXPECT_EQ(text_of(g, r.program), "f0:a,o f1:a,o f2:a,o free3 b2 free2 b1 free1 b0");
  EXPECT_EQ(r.s.peak, 15u);  // in the forward of 2: three slots and outputs; in its backward: 13 and the gradient of 2
  EXPECT_EQ(r.s.held, 13u);
  EXPECT_EQ(r.s.recompute_count, 0u);
  EXPECT_EQ(r.s.forward_seconds, 6);
  EXPECT_EQ(r.s.backward_seconds, 6);
}

TEST(PlanGenerate, BoundariesKept) {
  const ChainOf g(3, kPlain);
  const Ran r = step(g, policy(g, Again::boundaries, false, true));
  EXPECT_EQ(text_of(g, r.program), "f0:o f1:o f2:o free3 f2:a b2 free2 f1:a b1 free1 f0:a b0");
  EXPECT_EQ(r.s.peak, 9u);
  EXPECT_EQ(r.s.held, 4u);
  EXPECT_EQ(r.s.recompute_seconds, 3);  // slots only: nobody reads the outputs that belong to them
  EXPECT_EQ(r.s.recompute_count, 3u);
}

TEST(PlanGenerate, OneGroupRunAgainWithEverything) {
  const ChainOf g(3, kPlain);
  const Ran r = step(g, policy(g, Again::everything, false, false));
  EXPECT_EQ(text_of(g, r.program), "f0:o f1:o free1 f2:o free3 free2 f0:a,o f1:a,o f2:a b2 free2 b1 free1 b0");
  EXPECT_EQ(r.s.peak, 15u);
  EXPECT_EQ(r.s.held, 0u);
  EXPECT_EQ(r.s.recompute_seconds, 5);
}

TEST(PlanGenerate, OneGroupRunAgainWithBoundaries) {
  const ChainOf g(3, kPlain);
  const Ran r = step(g, policy(g, Again::boundaries, false, false));
  EXPECT_EQ(text_of(g, r.program), "f0:o f1:o free1 f2:o free3 free2 f0:o f1:o f2:a b2 free2 f1:a b1 free1 f0:a b0");
  EXPECT_EQ(r.s.peak, 9u);
  EXPECT_EQ(r.s.recompute_seconds, 2 + 2 + 3);
}

TEST(PlanGenerate, NothingKept) {
  const ChainOf g(3, kPlain);
  const Ran r = step(g, policy(g, Again::nothing, false, false));
  EXPECT_EQ(text_of(g, r.program), "f0:o f1:o free1 f2:o free3 free2 f0:o f1:o free1 f2:a b2 free2 f0:o f1:a b1 free1 f0:a b0");
  EXPECT_EQ(r.s.peak, 9u);
  EXPECT_EQ(r.s.recompute_seconds, 5 + 3 + 1);
}

TEST(PlanGenerate, HalvingTakesNLogNRunsAndLogNBoundaries) {
  for (uint32_t n : {2u, 3u, 10u, 64u, 100u, 1000u}) {
    const ChainOf g(n, kPlain);
    const Ran r = step(g, policy(g, Again::halves, false, false));
    const auto log = static_cast<uint64_t>(std::bit_width(n));
    EXPECT_LE(r.s.recompute_count, n * (log + 1)) << n;
    EXPECT_LE(r.s.peak, 9 + 2 * (log + 1)) << n;
  }
}

TEST(PlanGenerate, PartialFill) {
  Segment s = kPlain;
  s.slots = {{"a", 3, 1, {}}, {"b", 4, 5, {0}}, {"c", 1, 7, {1}}};
  s.output_reads = {2};
  const ChainOf g(1, s);
  Policy p = policy(g, Again::boundaries, false, true);
  p.keep_slots[0] = Bits::one(1);
  const Ran r = step(g, p);
  EXPECT_EQ(text_of(g, r.program), "f0:b,o free1 f0:a,c b0");
  EXPECT_EQ(r.s.recompute_seconds, 8);
}

TEST(PlanGenerate, ATransientSlotIsKeptForTheOnesThatReadIt) {
  Segment s = kPlain;
  s.slots = {{"t", 3, 5, {}, CKPT_SLOT_TRANSIENT}, {"b", 4, 1, {0}}};
  s.output_reads = {1};
  const ChainOf g(1, s);
  Policy p = policy(g, Again::boundaries, false, true);
  p.keep_slots[0] = Bits::one(0);
  EXPECT_EQ(text_of(g, step(g, p).program), "f0:t,o free1 f0:b drop0:t b0");
  p.keep_slots[0] = Bits::first(2);  // nobody reads it
  EXPECT_EQ(text_of(g, step(g, p).program), "f0:b,o free1 b0");
}

TEST(PlanGenerate, RecomputeSlotsAreMadeRightBeforeTheirBackward) {
  Segment s = kPlain;
  s.slots = {{"a", 3, 1, {}}, {"r", 4, 1, {0}, CKPT_SLOT_RECOMPUTE}};
  const ChainOf g(2, s);
  const Ran r = step(g, policy(g, Again::everything, true, true));
  EXPECT_EQ(text_of(g, r.program), "f0:a,o f1:a,o free2 f1:r b1 free1 f0:r b0");
  EXPECT_EQ(r.s.recompute_seconds, 2);
}

TEST(PlanGenerate, KeepItemsAreMadeOnce) {
  Segment s = kPlain;
  s.slots = {{"k", 3, 1, {}, CKPT_SLOT_KEEP}, {"a", 4, 1, {0}}};
  s.output_reads = {1};
  s.output_flags = CKPT_OUTPUT_KEEP;
  const ChainOf g(2, s);
  const Ran r = step(g, policy(g, Again::nothing, false, false));
  EXPECT_EQ(text_of(g, r.program), "f0:k,o f1:k,o f1:a b1 f0:a b0");
}

TEST(PlanGenerate, NoRefillWhereNoGradientComes) {
  Segment s = kPlain;
  s.input_flags = CKPT_INPUT_NO_GRAD;
  const ChainOf g(3, s);
  EXPECT_EQ(text_of(g, step(g, policy(g, Again::everything, false, true)).program), "f0:o f1:o free1 f2:o free3 f2:a b2 free2 b1 b0");
  EXPECT_EQ(text_of(g, step(g, policy(g, Again::everything, true, true)).program), "f0:o f1:o free1 f2:a,o free3 b2 free2 b1 b0");
}

TEST(PlanGenerate, BackwardThatReadsItsOutput) {
  Segment s = kPlain;
  s.output_flags = CKPT_OUTPUT_BACKWARD_READS;
  s.input_flags = CKPT_INPUT_BACKWARD_IGNORES;
  const ChainOf g(2, s);
  EXPECT_EQ(text_of(g, step(g, policy(g, Again::boundaries, true, false)).program), "f0:a,o f1:a,o free1 b1 f0:o b0");
  EXPECT_EQ(text_of(g, step(g, policy(g, Again::boundaries, true, true)).program), "f0:a,o f1:a,o b1 b0");
}

TEST(PlanGenerate, WhatTheUserReadsStaysUntilBackwardBegins) {
  ChainOf g(2, kPlain);
  g.values[2].read_at_end = true;
  g.values[1].read_at_end = true;
  EXPECT_EQ(text_of(g, step(g, policy(g, Again::everything, false, false)).program), "f0:o f1:o f1:a free2 b1 free1 f0:a b0");
  const Ran r = step(g, policy(g, Again::everything, true, true));
  EXPECT_EQ(text_of(g, r.program), "f0:a,o f1:a,o free2 b1 free1 b0");
  EXPECT_EQ(r.s.held, 10u);
}

// An encoder's output that its decoder reads again far away.
TEST(PlanGenerate, SkipConnection) {
  Graph g;
  g.rule.alignment_bytes = 1;
  g.add_input(0, 0, true, CKPT_GRAD_NONE);
  const auto one = testing::shape_of(kPlain, 1), two = testing::shape_of(kPlain, 2);
  g.shapes = {one, two};
  const auto add = [&](const Shape *s, std::vector<uint32_t> in) { g.nodes[g.add_node(s, in, nullptr, nullptr)].backward_seconds = 2; };
  add(one.get(), {0});
  add(one.get(), {1});
  add(one.get(), {2});
  add(two.get(), {3, 1});
  const Ran kept = step(g, policy(g, Again::boundaries, false, true));
  EXPECT_EQ(text_of(g, kept.program), "f0:o f1:o f2:o f3:o free4 f3:a b3 free3 f2:a b2 free2 f1:a b1 free1 f0:a b0");
  const Ran again = step(g, policy(g, Again::everything, false, false));
  EXPECT_EQ(text_of(g, again.program), "f0:o f1:o f2:o free2 f3:o free4 free3 free1 f0:a,o f1:a,o f2:a,o f3:a b3 free3 b2 free2 b1 free1 b0");
  // The gradient of boundary 1 is born in the backward of 3.
  const Ran rolling = step(g, policy(g, Again::nothing, false, false));
  EXPECT_EQ(text_of(g, rolling.program),
            "f0:o f1:o f2:o free2 f3:o free4 free3 free1 f0:o f1:o f2:o free2 f3:a b3 free3 free1 f0:o f1:o free1 f2:a b2 free2 f0:o f1:a b1 free1 f0:a b0");
}

TEST(PlanGenerate, AnOutputTakesItsInputsPlace) {
  Segment s = kPlain;
  s.in_place = 1;
  s.input_flags = CKPT_INPUT_BACKWARD_IGNORES;
  const ChainOf g(3, s);
  const Ran r = step(g, policy(g, Again::boundaries, true, true));
  EXPECT_EQ(text_of(g, r.program), "f0:a,o f1:a,o! f2:a,o! free3 b2 b1 b0");
  EXPECT_EQ(r.s.peak, 11u);  // three slots, and one boundary at a time or one gradient
  // Not where it is needed still, not over the caller's memory, not over another size.
  s.input_flags = 0;
  EXPECT_EQ(text_of(g, step(ChainOf(2, s), policy(ChainOf(2, s), Again::boundaries, true, true)).program), "f0:a,o f1:a,o free2 b1 free1 b0");
  Segment other = s;
  other.output_bytes = 5;
  other.input_flags = CKPT_INPUT_BACKWARD_IGNORES;
  ChainOf mixed(1, s);
  mixed.append(other);
  EXPECT_EQ(text_of(mixed, step(mixed, policy(mixed, Again::boundaries, true, true)).program), "f0:a,o f1:a,o free2 free1 b1 b0");
}

TEST(PlanGenerate, AKeptInputIsNotOverwritten) {
  Segment s = kPlain;
  s.in_place = 1;
  s.input_flags = CKPT_INPUT_BACKWARD_IGNORES;
  s.output_flags = CKPT_OUTPUT_KEEP;
  const ChainOf g(2, s);
  const Ran r = step(g, policy(g, Again::boundaries, true, true));
  EXPECT_EQ(text_of(g, r.program), "f0:a,o f1:a,o b1 b0");
  Program over = r.program;
  over.actions[1].in_place = over.actions[1].want & g.nodes[1].shape->outputs();
  Simulation sim;
  EXPECT_EQ(simulate_step(g, derive_gradients(g, default_roots(g)), over, arena::Placer(), &sim), CKPT_ERROR_INVALID_PLAN);
}

TEST(PlanGenerate, OneBoundaryBack) {
  const ChainOf g(4, kPlain);
  LiveState state = LiveState::start(g);
  state.nodes_run = 4;
  state.live[0] = g.nodes[0].shape->slots();
  state.live[3] = g.nodes[3].shape->outputs();
  Result<Program> p = write_make(g, state, 3);
  ASSERT_TRUE(p.ok()) << last_error();
  EXPECT_EQ(text_of(g, *p), "f0:o f1:o free1 f2:o free2");
  state.live[1] = g.nodes[1].shape->outputs();
  p = write_make(g, state, 3);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(text_of(g, *p), "f2:o");  // what was live stays
  p = write_make(g, state, 4);
  ASSERT_TRUE(p.ok());
  EXPECT_TRUE(p->actions.empty());
}

TEST(PlanGenerate, WhatCannotBeMadeAgain) {
  Segment s = kPlain;
  s.replayable = false;
  const ChainOf g(2, s);
  LiveState state = LiveState::start(g);
  state.nodes_run = 2;
  Result<Program> p = write_make(g, state, 1);
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.status(), CKPT_ERROR_INVALID_PLAN);
  EXPECT_NE(std::string(last_error()).find("no forward to run again"), std::string::npos) << last_error();
  EXPECT_FALSE(write_backward(g, derive_gradients(g, default_roots(g)), state, Again::everything, {}).ok());
  // Its own programs never come to that.
  EXPECT_EQ(text_of(g, step(g, policy(g, Again::nothing, false, false)).program), "f0:a,o f1:a,o b1 b0");
}

TEST(PlanGenerate, LongChainsNeitherOverflowNorTakeLong) {
  const ChainOf g(100'000, kPlain);
  for (Again again : {Again::everything, Again::boundaries, Again::halves}) {
    const Ran r = step(g, policy(g, again, false, false));
    EXPECT_GE(r.s.recompute_count, 100'000u);
  }
  EXPECT_EQ(runs_from_inputs(g), uint64_t{100'000} * 99'999 / 2);
}

}  // namespace
}  // namespace ckpt::plan
