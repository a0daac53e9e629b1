// Costs that drift while a plan is in use, by a clock of the test's own: when a tape plans again, and when it does not.
#include <gtest/gtest.h>

#include "../support/ops_laws.h"
#include "tape/tape.h"

namespace {

using namespace ops;
using ckpt::tape::Drift;

struct Script {
  double clock = 0;
  std::vector<double> cost;          // per segment: of its slot
  std::vector<uint32_t> recomputed;  // per segment: how often in this step
};

// y = x^2 / 2, by way of a slot that is 64 times as large and takes what the script says.
struct Timed final : Layer {
  static constexpr size_t kCount = 16, kSlot = 64 * kCount;
  Timed(Script *s, uint32_t at) : script(s), index(at) {
    spec.name = "timed";
    spec.slots = {{.name = "half_square", .bytes = floats(kSlot)}};
    spec.outputs = {{.name = "y", .bytes = floats(kCount)}};
    spec.input_flags = {0};
  }
  void forward(View &f) override {
    auto *half = static_cast<float *>(f.slot(0)), *y = static_cast<float *>(f.output(0));
    const auto *x = static_cast<const float *>(f.input(0));
    if (f.needs(0)) {
      for (size_t k = 0; k < kSlot; ++k) half[k] = x[k % kCount] * x[k % kCount] / 2;
      script->clock += script->cost[index];
      script->recomputed[index] += f.is_recompute();
    }
    if (f.needs_output(0)) {
      for (size_t k = 0; k < kCount; ++k) y[k] = half[k];
      script->clock += 1e-6;
    }
  }
  void backward(View &f) override {
    bool add = false;
    auto *dx = static_cast<float *>(f.input_grad(0, &add));
    const auto *x = static_cast<const float *>(f.input(0)), *half = static_cast<const float *>(f.slot(0)), *dy = static_cast<const float *>(f.output_grad(0));
    for (size_t k = 0; k < kCount; ++k) {
      const float value = dy[k] * (half[k + kCount] == x[k] * x[k] / 2 ? x[k] : -1e9f);
      dx[k] = add ? dx[k] + value : value;
    }
    script->clock += 1e-3;
  }
  Script *script;
  uint32_t index;
};

constexpr uint32_t kSegments = 6;

struct Training {
  Script script;
  Net net;
  std::unique_ptr<Session> session;
  uint32_t steps = 0;

  explicit Training(Options o = {}, size_t slots_short = 2) {
    script.cost = {1, 10, 1, 10, 5, 5};
    script.recomputed.assign(kSegments, 0);
    uint32_t x = net.input(Timed::kCount, true);
    for (uint32_t k = 0; k < kSegments; ++k) x = net.add(net.make<Timed>(&script, k), {x});
    net.root(x, std::vector<float>(Timed::kCount, 0.25f));
    if (slots_short > 0) {
      Options all;
      all.strategy = CKPT_STRATEGY_STORE_ALL;
      Session ample(all);
      o.budget = ample.step(net, 1, CKPT_TAPE_DRY).stats.arena_predicted_bytes - slots_short * floats(Timed::kSlot);
    }
    session = std::make_unique<Session>(o);
    session->tape->clock = [](void *user) { return *static_cast<double *>(user); };
    session->tape->clock_user = &script.clock;
    EXPECT_EQ(session->step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
  }
  // Good steps; which segments the last of them recomputed.
  std::vector<uint32_t> run(uint32_t count) {
    for (uint32_t k = 0; k < count; ++k) {
      const Result expected = plain(net, session->options.seed, session->stats().step);
      script.recomputed.assign(kSegments, 0);
      const Step got = session->step(net, 1);
      EXPECT_EQ(got.status, CKPT_OK) << got.text;
      EXPECT_EQ(difference(got.result, expected), "");
      EXPECT_EQ(got.stats.planned, 1u);
      EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
      ++steps;
    }
    return script.recomputed;
  }
  uint64_t plans() const { return session->stats().plan_count; }
  double predicted() const { return session->tape->cache.find(1)->plan.prediction.recompute_seconds; }
};

const std::vector<uint32_t> kEven = {1, 0, 1, 0, 0, 0}, kOdd = {0, 1, 0, 1, 0, 0};

TEST(TapeDrift, ThePlanIsMadeAgainAfterTwoMeasurementsThatAgree) {
  Training t;
  EXPECT_EQ(t.run(3), kEven) << "the cheap ones";
  const uint64_t plans = t.plans();
  EXPECT_EQ(t.run(3 * Drift::kFirstWait), kEven);
  EXPECT_EQ(t.plans(), plans) << "nothing has changed";
  t.script.cost = {10, 1, 10, 1, 5, 5};
  const uint32_t before = t.steps;
  while (t.run(1) == kEven) ASSERT_LT(t.steps, before + 3 * Drift::kFirstWait);
  EXPECT_EQ(t.script.recomputed, kOdd) << "all at once, between two steps";
  EXPECT_GT(t.steps - before, Drift::kFirstWait) << "one measurement is not enough";
  EXPECT_EQ(t.plans(), plans + 1);
  EXPECT_NEAR(t.predicted(), 2, 0.01);
  EXPECT_EQ(t.run(4 * Drift::kFirstWait), kOdd);
  EXPECT_EQ(t.plans(), plans + 1);
  // The known recording's costs are those of now.
  const ckpt::plan::Graph &graph = *t.session->tape->cache.find(1)->graph;
  for (uint32_t k = 0; k < kSegments; ++k) EXPECT_NEAR(graph.item_seconds[graph.nodes[k].first_item], t.script.cost[k], 1e-9);
}

TEST(TapeDrift, TheSameMeasurementsGiveTheSamePlansAtTheSameSteps) {
  std::vector<std::vector<uint32_t>> seen[2];
  for (auto &all : seen) {
    Training t;
    for (uint32_t k = 0; k < 4 * Drift::kFirstWait; ++k) {
      if (k == 20) t.script.cost = {5, 9, 40, 2, 7, 3};
      all.push_back(t.run(1));
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(TapeDrift, OneDisturbedStepChangesNothing) {
  Training t;
  t.run(3);
  const uint64_t plans = t.plans();
  // Whichever steps are measured: never two in a row of the disturbed kind.
  for (uint32_t k = 0; k < 8; ++k) {
    t.script.cost = k % 3 == 0 ? std::vector<double>{10, 1, 10, 1, 5, 5} : std::vector<double>{1, 10, 1, 10, 5, 5};
    EXPECT_EQ(t.run(Drift::kFirstWait), kEven);
  }
  EXPECT_EQ(t.plans(), plans);
}

TEST(TapeDrift, AllOfItSlowerIsNoReason) {
  Training t;
  t.run(3);
  const uint64_t plans = t.plans();
  for (double &c : t.script.cost) c *= 3;
  EXPECT_EQ(t.run(5 * Drift::kFirstWait), kEven);
  EXPECT_EQ(t.plans(), plans);
}

TEST(TapeDrift, APlanThatIsNotFasterIsNotTakenAndWaitsLonger) {
  Training t({}, 0);  // ample: nothing is recomputed, whatever it costs
  t.run(3);
  const uint64_t plans = t.plans();
  const std::vector<double> one = t.script.cost, other = {10, 1, 10, 1, 5, 5};
  std::vector<uint32_t> tried;
  for (uint32_t k = 0; tried.size() < 4; ++k) {
    ASSERT_LT(t.steps, 100 * Drift::kFirstWait);
    t.script.cost = (t.plans() - plans) % 2 == 0 ? other : one;
    const uint64_t now = t.plans();
    EXPECT_EQ(t.run(1), std::vector<uint32_t>(kSegments, 0));
    if (t.plans() > now) tried.push_back(t.steps);
  }
  // Two measurements each time, 32, 64, 128, 256 steps apart.
  EXPECT_EQ(tried[1] - tried[0], 4 * Drift::kFirstWait);
  EXPECT_EQ(tried[2] - tried[1], 8 * Drift::kFirstWait);
  EXPECT_EQ(tried[3] - tried[2], 16 * Drift::kFirstWait);
}

TEST(TapeDrift, NeverMeansNever) {
  Options o;
  o.replan = CKPT_REPLAN_NEVER;
  Training t(o);
  const std::vector<uint32_t> first = t.run(1);
  const uint64_t plans = t.plans();
  t.script.cost = {10, 1, 10, 1, 5, 5};
  EXPECT_EQ(t.run(4 * Drift::kFirstWait), first);
  t.script.cost = {1, 10, 1, 10, 5, 5};
  EXPECT_EQ(t.run(4 * Drift::kFirstWait), first);
  EXPECT_EQ(t.plans(), plans);
}

TEST(TapeDrift, AnAdoptedPlanStays) {
  Training t;
  t.run(3);
  ckpt_plan *plan = nullptr;
  ASSERT_EQ(ckpt_tape_plan(t.session->tape, 1, &plan), CKPT_OK);
  ASSERT_EQ(ckpt_tape_adopt(t.session->tape, 1, plan), CKPT_OK) << ckpt_last_error();
  ckpt_plan_destroy(plan);
  const uint64_t plans = t.plans();
  t.script.cost = {10, 1, 10, 1, 5, 5};
  EXPECT_EQ(t.run(4 * Drift::kFirstWait), kEven);
  EXPECT_EQ(t.plans(), plans);
}

TEST(TapeDrift, AFixedStrategyHasNothingToChoose) {
  Options o;
  o.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  Training t(o, 0);
  const std::vector<uint32_t> first = t.run(3);
  const uint64_t plans = t.plans();
  t.script.cost = {10, 1, 10, 1, 5, 5};
  EXPECT_EQ(t.run(4 * Drift::kFirstWait), first);
  EXPECT_EQ(t.plans(), plans);
}

// A recording that has begun keeps its plan, whatever is learnt meanwhile.
TEST(TapeDrift, NeverInsideAStep) {
  Training t;
  t.run(3);
  t.script.cost = {10, 1, 10, 1, 5, 5};
  Session &s = *t.session;
  uint64_t seen = 0;
  for (uint32_t k = 0; k < 4 * Drift::kFirstWait; ++k) {
    const uint64_t before = t.plans();
    ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
    const uint64_t begun = t.plans();
    seen += begun - before;
    ASSERT_EQ(s.forward(t.net), CKPT_OK);
    ASSERT_EQ(s.backward(t.net), CKPT_OK);
    EXPECT_EQ(t.plans(), begun) << "made before the step begins";
    s.uses().clear();
  }
  EXPECT_EQ(seen, 1u);
}

// What a plan puts off is not measured in a first run: its cost must not be forgotten.
TEST(TapeDrift, CostsOfWhatAPlanPutsOffAreKept) {
  Training t;
  t.run(4);
  const ckpt::plan::Graph &graph = *t.session->tape->cache.find(1)->graph;
  for (uint32_t k = 0; k < kSegments; ++k) EXPECT_NEAR(graph.item_seconds[graph.nodes[k].first_item], t.script.cost[k], 1e-9) << k;
}

// At the smallest budget a planner may find a plan by some costs and none by others: the one that was found works by any.
TEST(TapeDrift, APlanThatFitsIsNotLostToNewCosts) {
  const std::vector<uint32_t> genes = {1040, 0, 0, 683, 0, 0, 0, 2045, 0, 251, 0, 1681, 0, 0, 0, 0, 0, 0, 0};
  struct Random {
    uint64_t state;
    double clock = 0;
  };
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomNet r = random_net(genes);
    Options o;
    o.budget = minimum_of(r.net, o);
    Session s(o);
    Random random{seed};
    s.tape->clock = [](void *user) {
      auto *x = static_cast<Random *>(user);
      x->state = x->state * 6364136223846793005u + 1442695040888963407u;
      return x->clock += static_cast<double>(1 + (x->state >> 33) % 1000) * 1e-6;
    };
    s.tape->clock_user = &random;
    ASSERT_EQ(s.step(r.net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
    for (int k = 0; k < 4; ++k) {
      const Step got = s.step(r.net, 1);
      ASSERT_EQ(got.status, CKPT_OK) << got.text;
      EXPECT_EQ(got.stats.planned, 1u);
    }
  }
}

}  // namespace
