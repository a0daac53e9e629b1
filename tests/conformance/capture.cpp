// Scenario 15: a whole step with recompute and dropout, captured once and replayed; and all that a capture refuses.
#include "chain.h"

namespace {

using conformance::Chain;
using conformance::ChainOptions;
using conformance::Memory;
using conformance::Results;
using conformance::target;

constexpr uint64_t kKey = 7;

ChainOptions options(size_t budget = 0) {
  ChainOptions o;
  o.segments = 8;
  o.strategy = budget == 0 ? CKPT_STRATEGY_SQRT : CKPT_STRATEGY_AUTO;
  o.budget = budget;
  return o;
}

class Capture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!target().cuda) GTEST_SKIP() << "there are no graphs on the CPU";
  }
  void TearDown() override {
    if (!target().cuda) return;
    if (target().simulated) target().sim.reset();
  }
  static ckpt_status begin() { return ckpt_device_capture_begin(target().device, target().stream); }
  // Ends a capture that came to nothing.
  static void throw_away() {
    ckpt_graph *graph = nullptr;
    EXPECT_OK(ckpt_device_capture_end(target().device, target().stream, &graph));
    ckpt_graph_destroy(graph);
  }
  static ckpt_graph *captured_step(Chain &chain) {
    ckpt_graph *graph = nullptr;
    EXPECT_OK(begin());
    EXPECT_OK(chain.step(kKey));
    EXPECT_OK(ckpt_device_capture_end(target().device, target().stream, &graph));
    return graph;
  }
  // Something was refused: the next step is as always.
  static void goes_on(Chain &chain) {
    EXPECT_EQ(chain.arena_in_use(), 0u);
    const uint64_t step = chain.stats().step;
    EXPECT_OK(chain.step(kKey));
    EXPECT_EQ(chain.results().masks, chain.host_masks(step));
  }
};

std::vector<Results> eager(const ChainOptions &o, int steps) {
  Chain chain(o);
  std::vector<Results> all;
  for (int n = 0; n < steps; ++n) {
    EXPECT_OK(chain.step(kKey));
    all.push_back(chain.results());
  }
  return all;
}

TEST_F(Capture, ReplaysAreTheStepsThatTheyStandFor) {
  const std::vector<Results> wanted = eager(options(), 8);
  size_t budget = 0;
  {
    Chain chain(options());
    OK(chain.step(kKey));
    OK(chain.step(kKey));
    budget = chain.stats().arena_measured_bytes;
  }
  for (const size_t b : {size_t{0}, budget}) {
    Chain chain(options(b));
    for (size_t n = 0; n < 2; ++n) {
      OK(chain.step(kKey));
      EXPECT_TRUE(chain.results() == wanted[n]) << n;
    }
    OK(ckpt_tape_prepare(chain.tape, kKey));
    ckpt_graph *graph = captured_step(chain);
    ASSERT_NE(graph, nullptr);
    EXPECT_GT(chain.stats().recompute_count, 0u);
    EXPECT_EQ(chain.stats().planned, 1u);
    EXPECT_EQ(chain.stats().step, 2u) << "a captured step is not a step";
    EXPECT_EQ(chain.arena_in_use(), 0u);
    for (size_t n = 2; n < 5; ++n) {
      OK(ckpt_tape_replay(chain.tape));
      OK(ckpt_graph_launch(graph, target().stream));
      const Results seen = chain.results();
      EXPECT_TRUE(seen == wanted[n]) << n;
      EXPECT_EQ(seen.masks, chain.host_masks(n)) << n;
      EXPECT_NE(seen.masks, wanted[n - 1].masks);
    }
    EXPECT_EQ(chain.stats().step, 5u);
    OK(chain.step(kKey));  // with and without the graph, in turns
    EXPECT_TRUE(chain.results() == wanted[5]);
    OK(ckpt_tape_replay(chain.tape));
    OK(ckpt_graph_launch(graph, target().stream));
    EXPECT_TRUE(chain.results() == wanted[6]);
    OK(chain.step(kKey));
    EXPECT_TRUE(chain.results() == wanted[7]);
    ckpt_graph_destroy(graph);
  }
}

TEST_F(Capture, TheCallersOwnCaptureCountsToo) {
  Chain chain(options());
  OK(chain.step(kKey));
  OK(chain.step(kKey));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  const uint64_t step = chain.stats().step;
  ckpt_graph *graph = captured_step(chain);
  // Frames see the word, not the step.
  OK(ckpt_tape_set_step(chain.tape, 1000));
  OK(ckpt_tape_replay(chain.tape));
  OK(ckpt_graph_launch(graph, target().stream));
  EXPECT_EQ(chain.results().masks, chain.host_masks(1000));
  EXPECT_EQ(chain.stats().step, 1001u);
  EXPECT_NE(step, 1000u);
  ckpt_graph_destroy(graph);
}

TEST_F(Capture, APlanMustBePrepared) {
  Chain chain(options());
  OK(chain.step(kKey));
  OK(chain.step(kKey));
  OK(begin());
  REFUSED(chain.step(kKey), CKPT_ERROR_CAPTURE, "ckpt_tape_prepare", "key 7");
  REFUSED(chain.step(), CKPT_ERROR_CAPTURE, "ckpt_tape_begin", "key");  // an implicit begin
  REFUSED(ckpt_tape_prepare(chain.tape, kKey), CKPT_ERROR_CAPTURE, "prepare before");
  REFUSED(chain.step(kKey, CKPT_TAPE_NO_BACKWARD), CKPT_ERROR_CAPTURE, "flags are 0x2");
  throw_away();
  REFUSED(ckpt_tape_replay(chain.tape), CKPT_ERROR_STATE, "no whole step");
  goes_on(chain);
  OK(ckpt_tape_prepare(chain.tape, kKey));
  OK(begin());
  REFUSED(chain.step(kKey + 1), CKPT_ERROR_CAPTURE, "key 8");
  OK(chain.step(kKey));
  REFUSED(ckpt_tape_replay(chain.tape), CKPT_ERROR_CAPTURE, "being captured");
  throw_away();
  goes_on(chain);
}

TEST_F(Capture, AStepThatLeavesItsPlanIsRefused) {
  Chain chain(options());
  OK(chain.step(kKey));
  OK(chain.step(kKey));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  OK(begin());
  REFUSED(chain.step(kKey, 0, 5), CKPT_ERROR_CAPTURE, "leaves its prepared plan", "number 4");
  throw_away();
  goes_on(chain);
  OK(begin());
  chain.backward_flags = CKPT_BACKWARD_RETAIN;
  REFUSED(chain.step(kKey), CKPT_ERROR_CAPTURE, "RETAIN");
  chain.backward_flags = 0;
  throw_away();
  goes_on(chain);
  // A recording of which only a part is captured.
  ckpt_buffer buffer = 0;
  const void *grad = chain.root;
  OK(ckpt_tape_begin(chain.tape, kKey, 0));
  OK(chain.forward(8, &buffer));
  OK(begin());
  REFUSED(ckpt_backward(chain.tape, &buffer, &grad, 1, 0), CKPT_ERROR_CAPTURE, "capture whole steps");
  throw_away();
  goes_on(chain);
  OK(begin());
  OK(ckpt_tape_begin(chain.tape, kKey, 0));
  OK(chain.forward(8, &buffer));
  throw_away();
  REFUSED(ckpt_backward(chain.tape, &buffer, &grad, 1, 0), CKPT_ERROR_CAPTURE, "not any more");
  goes_on(chain);
  ckpt_recording *recording = nullptr;
  OK(begin());
  OK(ckpt_tape_begin(chain.tape, kKey, 0));
  OK(chain.forward(8, &buffer));
  REFUSED(ckpt_tape_detach(chain.tape, &recording), CKPT_ERROR_CAPTURE, "backward runs before");
  OK(ckpt_tape_reset(chain.tape));
  throw_away();
  goes_on(chain);
}

TEST_F(Capture, WhatWaitsForTheDeviceIsRefused) {
  for (const bool guard : {false, true}) {
    ChainOptions o = options();
    o.arena_flags = guard ? uint32_t{CKPT_ARENA_GUARD} : 0u;
    o.checks = guard ? 0u : uint32_t{CKPT_CHECK_INPUTS};
    Chain chain(o);
    OK(chain.step(kKey));
    OK(chain.step(kKey));
    OK(ckpt_tape_prepare(chain.tape, kKey));
    OK(begin());
    REFUSED(chain.step(kKey), CKPT_ERROR_CAPTURE, guard ? "CKPT_ARENA_GUARD" : "checks");
    throw_away();
    goes_on(chain);
  }
  ChainOptions o = options();
  o.state = true;
  Chain chain(o);
  OK(chain.step(kKey));
  OK(chain.step(kKey));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  OK(begin());
  REFUSED(chain.step(kKey), CKPT_ERROR_CAPTURE, "save_state", "'layer'");
  throw_away();
  goes_on(chain);
}

// Memory for the plan is there after prepare, in an arena without capacity too.
TEST_F(Capture, PrepareCommitsTheMemory) {
  ChainOptions o = options();
  o.capacity = 0;
  o.budget = size_t{200} << 20;
  Chain chain(o);
  OK(chain.step(kKey, CKPT_TAPE_DRY));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  Chain reference(options());
  OK(reference.step(kKey));
  // Layers take their work space in a step that is not captured; no step of this tape has run.
  ckpt_graph *graph = captured_step(chain);
  OK(ckpt_tape_replay(chain.tape));
  OK(ckpt_graph_launch(graph, target().stream));
  EXPECT_TRUE(chain.results() == reference.results());
  ckpt_graph_destroy(graph);
}

// Each call of a capture and a replay fails once; whatever happens, the next step is right.
TEST_F(Capture, EveryCallMayFail) {
  if (!target().simulated) GTEST_SKIP() << "only the double fails when it is asked to";
  ChainOptions o = options();
  o.segments = 3;
  const std::vector<Results> wanted = eager(o, 3);
  Chain chain(o);
  OK(chain.step(kKey));
  OK(chain.step(kKey));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  const std::string before = target().sim.things();
  uint64_t failures = 0;
  for (uint64_t k = 1;; ++k) {
    ASSERT_LT(k, 5000u);
    OK(ckpt_tape_set_step(chain.tape, 2));
    target().sim.fail_call(k, 1, nullptr);
    ckpt_graph *graph = nullptr;
    ckpt_status status = begin();
    if (!status) {
      status = chain.step(kKey);
      const ckpt_status ended = ckpt_device_capture_end(target().device, target().stream, &graph);
      if (!status) status = ended;
    }
    if (!status) status = ckpt_tape_replay(chain.tape);
    if (!status) status = ckpt_graph_launch(graph, target().stream);
    const std::string call = target().sim.failed_call();
    target().sim.fail_call(0, 0, nullptr);
    ckpt_graph_destroy(graph);
    OK(ckpt_device_synchronize(target().device, target().stream)) << call;
    EXPECT_EQ(target().sim.things(), before) << call;
    EXPECT_EQ(chain.arena_in_use(), 0u) << call;
    OK(ckpt_tape_set_step(chain.tape, 2));
    if (!status) {
      EXPECT_TRUE(chain.results() == wanted[2]) << call;
    }
    if (call.empty()) {
      EXPECT_EQ(status, CKPT_OK) << ckpt_last_error();
      break;
    }
    failures += status != CKPT_OK;
    OK(chain.step(kKey)) << call;
    ASSERT_TRUE(chain.results() == wanted[2]) << call;
  }
  EXPECT_GT(failures, 20u);
}

TEST(CaptureOnTheCpu, ReplayHasNothingToReplay) {
  if (target().cuda) GTEST_SKIP() << "elsewhere there are graphs";
  Chain chain(options());
  OK(chain.step(kKey));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  REFUSED(ckpt_tape_replay(chain.tape), CKPT_ERROR_STATE, "no whole step");
  REFUSED(ckpt_tape_replay(nullptr), CKPT_ERROR_INVALID_ARGUMENT, "tape is NULL");
}

}  // namespace
