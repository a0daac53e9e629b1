// A tape's laws on every device: the same bits for every strategy and budget, predicted memory equals measured, nothing left, nothing
// waited for.
#include "chain.h"

namespace {

using conformance::Chain;
using conformance::ChainOptions;
using conformance::Results;
using conformance::target;

constexpr uint64_t kKey = 7;

ChainOptions with(uint32_t strategy, size_t budget = 0, uint32_t k = 0) {
  ChainOptions o;
  o.strategy = strategy;
  o.budget = budget;
  o.k = k;
  return o;
}

struct Lap {
  std::vector<Results> steps;
  ckpt_tape_stats stats;
};
Lap run(const ChainOptions &options, int steps = 6) {
  Chain chain(options);
  Lap r;
  for (int n = 0; n < steps; ++n) {
    EXPECT_OK(chain.step(kKey));
    r.steps.push_back(chain.results());
    EXPECT_EQ(chain.arena_in_use(), 0u);
    const ckpt_tape_stats s = chain.stats();
    if (s.planned) {
      EXPECT_EQ(s.peak_predicted_bytes, s.peak_measured_bytes) << n;
      EXPECT_EQ(s.arena_predicted_bytes, s.arena_measured_bytes) << n;
    }
    if (n >= 1) {
      EXPECT_EQ(s.planned, 1u) << n;
    }
    EXPECT_LE(s.arena_measured_bytes, s.budget_bytes);
  }
  r.stats = chain.stats();
  EXPECT_EQ(r.stats.step, static_cast<uint64_t>(steps));
  return r;
}

const Lap &reference() {
  static const Lap r = run(with(CKPT_STRATEGY_STORE_ALL));
  return r;
}

void expect_same(const Lap &r, const char *what) {
  ASSERT_EQ(r.steps.size(), reference().steps.size());
  for (size_t n = 0; n < r.steps.size(); ++n) EXPECT_TRUE(r.steps[n] == reference().steps[n]) << what << ", step " << n;
}

TEST(Tape, MasksAreTheHosts) {
  Chain chain(with(CKPT_STRATEGY_STORE_ALL));
  for (uint64_t n = 0; n < 6; ++n) {
    EXPECT_EQ(reference().steps[n].masks, chain.host_masks(n)) << n;
    if (n > 0) {
      EXPECT_NE(reference().steps[n].masks, reference().steps[n - 1].masks);
    }
  }
  for (const float g : reference().steps[5].weight_grads) ASSERT_FALSE(g != g);
}

// Scenario 1.
TEST(Tape, EveryStrategyHasTheSameBits) {
  expect_same(run(with(CKPT_STRATEGY_EVERY_SEGMENT)), "every_segment");
  expect_same(run(with(CKPT_STRATEGY_SQRT)), "sqrt");
  expect_same(run(with(CKPT_STRATEGY_UNIFORM, 0, 5)), "uniform:5");
  expect_same(run(with(CKPT_STRATEGY_BLOCK, 0, 11)), "block:11");
  expect_same(run(with(CKPT_STRATEGY_FULL), 6), "full");
}

TEST(Tape, EveryBudgetHasTheSameBits) {
  const size_t all = reference().stats.arena_measured_bytes;
  const Lap whole = run(with(CKPT_STRATEGY_AUTO, all));
  expect_same(whole, "100 %");
  EXPECT_EQ(whole.stats.recompute_count, 0u);
  const Lap half = run(with(CKPT_STRATEGY_AUTO, all / 2));
  expect_same(half, "50 %");
  EXPECT_GT(half.stats.recompute_count, 0u);
  const size_t least = half.stats.minimum_budget_bytes;
  ASSERT_GT(least, 0u);
  Chain tight(with(CKPT_STRATEGY_AUTO, least));
  OK(tight.step(kKey, CKPT_TAPE_DRY));
  for (size_t n = 0; n < 3; ++n) {
    OK(tight.step(kKey));
    EXPECT_TRUE(tight.results() == reference().steps[n]) << n;
    EXPECT_LE(tight.stats().arena_measured_bytes, least);
  }
  Chain refused(with(CKPT_STRATEGY_AUTO, least - 256));
  REFUSED(refused.step(kKey, CKPT_TAPE_DRY), CKPT_ERROR_BUDGET, "budget");
}

TEST(Tape, ChecksPassAndFindAChange) {
  ChainOptions o = with(CKPT_STRATEGY_AUTO, reference().stats.arena_measured_bytes / 2);
  o.segments = 24;
  o.checks = CKPT_CHECK_DETERMINISM | CKPT_CHECK_INPUTS | CKPT_CHECK_RECOMPUTE;
  o.capacity = size_t{16} << 20;
  Chain chain(o);
  for (size_t n = 0; n < 2; ++n) {
    OK(chain.step(kKey)) << n;
    EXPECT_TRUE(chain.results() == reference().steps[n]);
  }
  // The input changes between forward and backward.
  OK(ckpt_tape_begin(chain.tape, kKey, 0));
  ckpt_buffer buffer = 0;
  OK(chain.forward(o.segments, &buffer));
  OK(ckpt_device_fill(target().device, target().stream, chain.input, 1, 4));
  const void *grad = chain.root;
  REFUSED(ckpt_backward(chain.tape, &buffer, &grad, 1, 0), CKPT_ERROR_CHECK, "changed", "input 0");
  EXPECT_EQ(chain.arena_in_use(), 0u);
}

TEST(Tape, GuardsAndPoisonChangeNothing) {
  ChainOptions o = with(CKPT_STRATEGY_SQRT);
  o.arena_flags = CKPT_ARENA_GUARD | CKPT_ARENA_POISON;
  Chain chain(o);
  for (size_t n = 0; n < 2; ++n) {
    OK(chain.step(kKey));
    EXPECT_TRUE(chain.results() == reference().steps[n]) << n;
  }
}

TEST(Tape, AnArenaWithoutCapacityServesATape) {
  ChainOptions o = with(CKPT_STRATEGY_SQRT);
  o.capacity = 0;
  o.budget = size_t{4} << 20;
  Chain chain(o);
  for (size_t n = 0; n < 3; ++n) {
    OK(chain.step(kKey));
    EXPECT_TRUE(chain.results() == reference().steps[n]) << n;
  }
}

// Two recordings in flight: each has the bits of its own step, whatever the order of their backwards.
TEST(Tape, RecordingsInFlightHaveTheBitsOfTheirSteps) {
  for (const uint32_t strategy : {uint32_t{CKPT_STRATEGY_STORE_ALL}, uint32_t{CKPT_STRATEGY_SQRT}}) {
    ChainOptions o = with(strategy);
    o.in_flight = 2;
    Chain chain(o);
    for (uint64_t round = 0; round < 3; ++round) {
      ckpt_recording *recordings[2] = {};
      ckpt_buffer outputs[2] = {};
      const void *grad = chain.root;
      for (int r = 0; r < 2; ++r) {
        OK(ckpt_tape_begin(chain.tape, kKey, 0));
        OK(chain.forward(o.segments, &outputs[r]));
        OK(ckpt_tape_detach(chain.tape, &recordings[r]));
      }
      for (const int r : {1, 0}) {
        OK(ckpt_device_fill(target().device, target().stream, chain.weight_grads, 0, 4 * o.segments * conformance::kWeights));
        OK(ckpt_recording_backward(recordings[r], &outputs[r], &grad, 1, 0));
        const Results seen = chain.results();
        const Results &wanted = reference().steps[2 * round + static_cast<uint64_t>(r)];
        EXPECT_EQ(std::memcmp(seen.weight_grads.data(), wanted.weight_grads.data(), 4 * seen.weight_grads.size()), 0) << round << " " << r;
        EXPECT_EQ(std::memcmp(seen.input_grad.data(), wanted.input_grad.data(), 4 * seen.input_grad.size()), 0);
        ckpt_recording_destroy(recordings[r]);
      }
      EXPECT_EQ(chain.arena_in_use(), 0u);
    }
  }
}

TEST(Tape, ARetainedRecordingRunsBackwardTwice) {
  Chain chain(with(CKPT_STRATEGY_SQRT));
  for (size_t n = 0; n < 2; ++n) {
    chain.backward_flags = CKPT_BACKWARD_RETAIN;
    OK(chain.step(kKey));
    EXPECT_TRUE(chain.results() == reference().steps[n]) << n;
    OK(ckpt_tape_reset(chain.tape));
    EXPECT_EQ(chain.arena_in_use(), 0u);
  }
}

// A plan in use that was sampled again (every 32nd step) is a plan still.
TEST(Tape, ManyStepsStayTheSame) {
  ChainOptions o = with(CKPT_STRATEGY_AUTO, 0);
  o.segments = 4;
  Chain once(o), chain(o);
  OK(ckpt_tape_set_step(once.tape, 70));
  OK(once.step(kKey));
  for (int n = 0; n < 71; ++n) OK(chain.step(kKey));
  EXPECT_TRUE(chain.results() == once.results());
  EXPECT_LE(chain.stats().plan_count, 5u);
}

// Costs are measured without waiting: by the clock on the CPU, by events elsewhere, which are looked at when a later step begins.
TEST(Tape, CostsAreMeasuredWithoutWaiting) {
  Chain chain(with(CKPT_STRATEGY_AUTO, reference().stats.arena_measured_bytes / 2));
  OK(chain.step(kKey));
  if (target().cuda) {
    EXPECT_EQ(chain.stats().forward_seconds, 0);
  }
  OK(ckpt_device_synchronize(target().device, target().stream));
  OK(ckpt_tape_begin(chain.tape, kKey, 0));
  OK(ckpt_tape_reset(chain.tape));
  OK(chain.step(kKey));
  OK(ckpt_device_synchronize(target().device, target().stream));
  // Of the second step, which was measured too and has recomputed.
  OK(ckpt_tape_prepare(chain.tape, kKey));
  EXPECT_GT(chain.stats().forward_seconds, 0);
  EXPECT_GT(chain.stats().backward_seconds, 0);
  EXPECT_GT(chain.stats().recompute_seconds, 0);
  const uint64_t plans = chain.stats().plan_count;
  EXPECT_GE(plans, 2u) << "a plan by costs follows one by bytes";
}

TEST(Tape, AStepWaitsForNothing) {
  if (!target().simulated) GTEST_SKIP() << "the double counts calls";
  const conformance::Sim &sim = target().sim;
  Chain chain(with(CKPT_STRATEGY_AUTO, reference().stats.arena_measured_bytes / 2));
  OK(chain.step(kKey));
  OK(chain.step(kKey));
  const char *waits[] = {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMalloc", "cudaFree", "cudaMemcpy", "cuMemCreate", "cuMemMap", "cuMemUnmap"};
  OK(ckpt_device_synchronize(target().device, target().stream));
  OK(chain.step(kKey));
  const std::string things = sim.things();
  uint64_t before[9];
  for (size_t k = 0; k < 9; ++k) before[k] = sim.calls_of(waits[k]);
  for (int n = 0; n < 40; ++n) OK(chain.step(kKey));  // one of these is measured again
  for (size_t k = 0; k < 9; ++k) EXPECT_EQ(sim.calls_of(waits[k]), before[k]) << waits[k];
  EXPECT_EQ(sim.things(), things) << "events are used again";
}

// What an event says is what the work took.
TEST(Tape, ASlowKernelCostsItsTime) {
  if (!target().simulated) GTEST_SKIP() << "only the double can be slowed";
  ChainOptions o = with(CKPT_STRATEGY_AUTO, 0);
  o.segments = 4;
  Chain chain(o);
  OK(chain.step(kKey));
  OK(ckpt_device_synchronize(target().device, target().stream));
  target().sim.delay(CUDASIM_KERNEL, 2, 150);
  OK(chain.step(kKey));
  OK(ckpt_device_synchronize(target().device, target().stream));
  OK(ckpt_tape_prepare(chain.tape, kKey));
  EXPECT_GE(chain.stats().forward_seconds + chain.stats().backward_seconds, 0.14);
  target().sim.reset();
}

}  // namespace
