// Planned steps with places chosen beforehand: nothing is looked for, the height is the plan's, and whatever departs from the
// plan goes on as placing goes.
#include <gtest/gtest.h>

#include "../support/ops_laws.h"
#include "../support/placed.h"
#include "../support/slow.h"

namespace {

using namespace ops;
using placed::How;
using placed::place_plans;

Net chain(size_t n, size_t count = 48, bool extra = false) {
  Net net;
  uint32_t x = net.input(count, true);
  for (size_t k = 0; k < n; ++k) x = net.then<Mlp>(x, "mlp", count, static_cast<uint32_t>(k));
  if (extra) x = net.then<Relu>(x, "relu", count);
  net.root(net.then<Loss>(x, "loss", count, true));
  return net;
}

Options with(uint32_t strategy, size_t budget = 0, uint32_t arena_flags = CKPT_ARENA_POISON | CKPT_ARENA_GUARD) {
  Options o;
  o.strategy = strategy;
  o.budget = budget;
  o.arena_flags = arena_flags;
  return o;
}

constexpr uint32_t kStrategies[] = {CKPT_STRATEGY_AUTO, CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL};

uint64_t decisions(const Session &s) { return s.tape->arena->placer().decision_count(); }

Step good(Session &s, Net &net, uint64_t key = 1) {
  const Result expected = plain(net, s.options.seed, s.stats().step);
  const Step got = key != 0 ? s.step(net, key) : s.step(net, 0, 0, false);
  EXPECT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, expected), "");
  EXPECT_EQ(s.tape->arena->placer().region(), 0u) << "the region goes with its recording";
  return got;
}

// A tape that knows `net` by key 1, with places.
void know(Session &s, Net &net, How how = How::first_fit) {
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
  for (int k = 0; k < 2; ++k) good(s, net);
  EXPECT_EQ(s.stats().planned, 1u);
  ASSERT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_OK) << ckpt_last_error();  // the plan by the costs that were measured
  ASSERT_EQ(place_plans(s.tape, how), 1u);
}

TEST(TapePlaced, APlannedStepLooksForNoPlace) {
  for (const uint32_t strategy : kStrategies)
    for (const How how : {How::first_fit, How::apart}) {
      SCOPED_TRACE(ckpt_strategy_name(strategy));
      Net net = chain(6);
      Session s(with(strategy));
      know(s, net, how);
      const size_t height = s.tape->cache.find(1)->plan.prediction.height;
      const uint64_t before = decisions(s);
      for (int k = 0; k < 4; ++k) {
        const Step got = good(s, net);
        EXPECT_EQ(got.stats.planned, 1u);
        EXPECT_EQ(got.stats.arena_measured_bytes, height);
        EXPECT_EQ(got.stats.arena_predicted_bytes, height);
        EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
      }
      EXPECT_EQ(decisions(s), before);
    }
}

// Places as the library's packer chooses them, for a budget that is the smallest there is, and for more.
TEST(TapePlaced, ATapesOwnPlansHavePlaces) {
  for (const uint32_t strategy : kStrategies)
    for (const double part : {0.0, 0.3, 1.0}) {
      SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + ", " + std::to_string(part));
      Net net = chain(6);
      const size_t minimum = minimum_of(net, with(strategy));
      Session s(with(strategy, minimum + static_cast<size_t>(part * static_cast<double>(minimum))));
      ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
      for (int k = 0; k < 4; ++k) {
        ASSERT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_OK) << ckpt_last_error();
        const size_t height = s.tape->cache.find(1)->plan.prediction.height;
        const Step got = good(s, net);
        EXPECT_EQ(got.stats.planned, 1u);
        EXPECT_EQ(got.stats.arena_measured_bytes, got.stats.arena_predicted_bytes);
        EXPECT_EQ(got.stats.arena_measured_bytes, height);
      }
      EXPECT_EQ(decisions(s), 0u);
    }
}

// Nets with skips, several roots, in-place outputs, groups, scratch, and gradients over gradients.
TEST(TapePlaced, RandomNets) {
  for (uint32_t seed = 1; seed <= 40; seed += plan_test::kSlow) {
    SCOPED_TRACE(seed);
    std::vector<uint32_t> genes;
    uint32_t state = seed * 2654435761u;
    for (uint32_t k = 0; k < 4 + seed; ++k) genes.push_back((state = state * 1664525u + 1013904223u) >> 20);
    RandomNet r = random_net(genes);
    Session s(with(kStrategies[seed % std::size(kStrategies)]));
    const Step dry = s.step(r.net, 1, CKPT_TAPE_DRY);
    ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
    for (int k = 0; k < 2; ++k) {
      const HostState start(r.net);
      ASSERT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_OK) << ckpt_last_error();
      place_plans(s.tape, k == 0 ? How::first_fit : How::apart);
      const Result expected = plain(r.net, s.options.seed, s.stats().step);
      start.restore(r.net);
      const uint64_t before = decisions(s);
      const Step got = s.step(r.net, 1);
      ASSERT_EQ(got.status, CKPT_OK) << got.text;
      EXPECT_EQ(difference(got.result, expected), "");
      EXPECT_EQ(got.stats.planned, 1u);
      EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
      EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
      EXPECT_EQ(decisions(s), before);
    }
  }
}

TEST(TapePlaced, SmallerSizesTakeTheSamePlaces) {
  for (const uint32_t strategy : kStrategies) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Net net = chain(5, 48), small = chain(5, 20), large = chain(5, 100);
    Session s(with(strategy));
    know(s, net);
    const uint64_t before = decisions(s);
    const Step got = good(s, small);
    EXPECT_EQ(decisions(s), before);
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(good(s, large).stats.planned, 0u);
    EXPECT_EQ(good(s, large).stats.planned, 1u);
  }
}

// The scratch that the plan has is not asked for: what comes next must not take its place.
TEST(TapePlaced, WithoutScratchThePlacesAreLeft) {
  const auto make = [](size_t scratch) {
    Net net;
    uint32_t x = net.input(48, true);
    for (uint32_t k = 0; k < 4; ++k) {
      auto *layer = net.make<Mlp>("mlp", size_t{48}, k);
      layer->spec.forward_scratch = scratch;
      layer->spec.backward_scratch = scratch;
      x = net.add(layer, {x});
    }
    net.root(net.then<Loss>(x, "loss", size_t{48}, true));
    return net;
  };
  for (const uint32_t strategy : kStrategies) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Net net = make(512), less = make(256), none = make(0);
    Session s(with(strategy));
    know(s, net);
    const uint64_t before = decisions(s);
    EXPECT_EQ(good(s, less).stats.planned, 1u);
    EXPECT_EQ(decisions(s), before);
    const Step got = good(s, none);
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_GT(decisions(s), before);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(good(s, net).stats.planned, 1u);
  }
}

// A step with `event` before segment `at` (n: after the last one).
template <class Event>
Step step_with(Session &s, Net &net, size_t at, Event &&event) {
  Step got;
  net.zero_grads();
  got.status = ckpt_tape_begin(s.tape, 1, 0);
  if (!got.status) got.status = s.forward(net, 0);
  for (size_t k = 0; !got.status && k <= net.nodes.size(); ++k) {
    if (k == at) got.status = event();
    if (!got.status && k < net.nodes.size()) got.status = s.run_node(net, net.nodes[k]);
  }
  if (!got.status) got.status = s.backward(net);
  if (got.status) got.text = ckpt_last_error();
  got.stats = s.stats();
  got.result = collect(net);
  EXPECT_EQ(s.log.violation, "");
  s.uses().clear();
  return got;
}

TEST(TapePlaced, AnAllocationByTheUserSettlesIt) {
  for (const uint32_t strategy : kStrategies)
    for (size_t at = 0; at <= 7; at += plan_test::kSlow > 1 ? 3 : 1)
      for (const uint32_t side : {0u, uint32_t{CKPT_ARENA_HIGH}}) {
        SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + " at " + std::to_string(at));
        Net net = chain(6);
        Session s(with(strategy));
        know(s, net);
        const Result expected = plain(net, s.options.seed, s.stats().step);
        void *mine = nullptr;
        const Step got = step_with(s, net, at, [&] {
          mine = ckpt_arena_alloc(s.arena, 1000, side);
          EXPECT_NE(mine, nullptr);
          if (mine != nullptr) std::memset(mine, 3, 1000);
          EXPECT_EQ(s.tape->arena->placer().region(), 0u);
          return CKPT_OK;
        });
        ASSERT_EQ(got.status, CKPT_OK) << got.text;
        EXPECT_EQ(difference(got.result, expected), "");
        EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
        EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
        for (size_t k = 0; k < 1000; ++k) ASSERT_EQ(static_cast<char *>(mine)[k], 3);
        // Beside what is there now it is planned again, in a region above it.
        const uint64_t before = decisions(s);
        const Step beside = good(s, net);
        EXPECT_EQ(beside.stats.planned, 1u);
        EXPECT_EQ(beside.stats.arena_predicted_bytes, beside.stats.arena_measured_bytes);
        EXPECT_EQ(beside.stats.peak_predicted_bytes, beside.stats.peak_measured_bytes);
        EXPECT_EQ(decisions(s), before);
        EXPECT_EQ(ckpt_arena_free(s.arena, mine), CKPT_OK);
      }
}

TEST(TapePlaced, ABlockOfTheUsersMayGoMeanwhile) {
  Net net = chain(6);
  Session s(with(CKPT_STRATEGY_SQRT));
  void *low = ckpt_arena_alloc(s.arena, 1000, 0), *lower = ckpt_arena_alloc(s.arena, 500, 0), *high = ckpt_arena_alloc(s.arena, 1000, CKPT_ARENA_HIGH);
  know(s, net);
  const uint64_t before = decisions(s);
  size_t at = 2;
  for (void *block : {lower, low, high}) {
    const Result one = plain(net, s.options.seed, s.stats().step);
    const Step got = step_with(s, net, at++, [&] { return ckpt_arena_free(s.arena, block); });
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, one), "");
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
  }
  EXPECT_EQ(decisions(s), before);
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
}

TEST(TapePlaced, ReadingAndHolding) {
  for (const uint32_t strategy : kStrategies)
    for (size_t at = 1; at <= 7; ++at)
      for (size_t what = 1; what <= at; ++what) {
        SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + " at " + std::to_string(at) + " reads " + std::to_string(what));
        Net net = chain(6);
        Session s(with(strategy));
        know(s, net);
        const Result expected = plain(net, s.options.seed, s.stats().step);
        const void *data = nullptr;
        const Step got = step_with(s, net, at, [&] { return ckpt_tape_read(s.tape, s.buffers[what], &data); });
        ASSERT_EQ(got.status, CKPT_OK) << got.text;
        EXPECT_EQ(difference(got.result, expected), "");
        if (got.stats.planned) {
          EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
          EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
        }
        good(s, net);
      }
}

TEST(TapePlaced, AnotherStructureOnTheWay) {
  for (const uint32_t strategy : kStrategies)
    for (size_t n = 0; n <= 8; n += plan_test::kSlow) {
      SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + ", " + std::to_string(n));
      Net net = chain(6), other = chain(n, 48, true);
      Session s(with(strategy));
      know(s, net);
      EXPECT_EQ(good(s, other).stats.planned, 0u);
      EXPECT_EQ(good(s, other).stats.planned, 1u);
      ASSERT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(place_plans(s.tape), 2u);
      // By prefix: the longest is expected, and left for the one that ends alike.
      for (Net *each : {&net, &other}) {
        const Step got = good(s, *each, 0);
        EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.planned ? got.stats.arena_measured_bytes : 0u);
      }
    }
}

TEST(TapePlaced, RetainedAbandonedFailedAndForwardOnly) {
  for (const uint32_t strategy : kStrategies) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Net net = chain(6);
    Session s(with(strategy));
    know(s, net);
    const Result expected = plain(net, s.options.seed, s.stats().step);
    net.zero_grads();
    ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
    ASSERT_EQ(s.forward(net), CKPT_OK);
    ASSERT_EQ(s.backward(net, CKPT_BACKWARD_RETAIN), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(net), expected), "");
    net.zero_grads();
    ASSERT_EQ(s.backward(net), CKPT_OK) << ckpt_last_error();
    EXPECT_EQ(difference(collect(net), expected), "");
    s.uses().clear();
    // Abandoned at each segment, and failing at each callback.
    for (size_t k = 0; k <= net.nodes.size(); ++k) {
      ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK);
      ASSERT_EQ(s.forward(net, k), CKPT_OK);
      ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
      EXPECT_EQ(s.tape->arena->placer().region(), 0u);
      EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    }
    for (int64_t k = 0;; ++k) {
      s.log.fail_in = k;
      const Step got = s.step(net, 1);
      if (got.status == CKPT_OK) break;
      EXPECT_EQ(s.tape->arena->placer().region(), 0u);
    }
    s.log.fail_in = -1;
    ASSERT_EQ(ckpt_tape_begin(s.tape, 1, CKPT_TAPE_NO_BACKWARD), CKPT_OK);
    ASSERT_EQ(s.forward(net), CKPT_OK);
    ASSERT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
    s.uses().clear();
    // A step that has left its plan is planned anew.
    ASSERT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_OK) << ckpt_last_error();
    ASSERT_EQ(place_plans(s.tape), 1u);
    const uint64_t before = decisions(s);
    EXPECT_EQ(good(s, net).stats.planned, 1u);
    EXPECT_EQ(decisions(s), before);
  }
}

// Recordings in flight that nobody has announced: each new one ends the region of the one before.
TEST(TapePlaced, AnotherRecordingInFlight) {
  for (const uint32_t strategy : kStrategies) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Net net = chain(6);
    Session s(with(strategy));
    know(s, net);
    std::vector<Result> expected;
    std::vector<ckpt_recording *> recordings;
    std::vector<std::vector<ckpt_buffer>> roots;
    for (uint64_t k = 0; k < 3; ++k) {
      expected.push_back(plain(net, s.options.seed, s.stats().step));
      ASSERT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_OK) << ckpt_last_error();
      ASSERT_EQ(s.forward(net), CKPT_OK) << ckpt_last_error();
      recordings.push_back(nullptr);
      ASSERT_EQ(ckpt_tape_detach(s.tape, &recordings.back()), CKPT_OK);
      roots.push_back({s.buffers.back()});
    }
    for (const size_t k : {1u, 0u, 2u}) {
      net.zero_grads();
      ASSERT_EQ(ckpt_recording_backward(recordings[k], roots[k].data(), nullptr, 1, 0), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(difference(collect(net), expected[k]), "");
      ckpt_recording_destroy(recordings[k]);
    }
    EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
    EXPECT_EQ(s.tape->arena->placer().region(), 0u);
    s.uses().clear();
    const uint64_t before = decisions(s);
    EXPECT_EQ(good(s, net).stats.planned, 1u);
    EXPECT_EQ(decisions(s), before);
  }
}

// The packed height is the budget, and placing as one goes needs more: what departs is made to fit, or refused clearly.
TEST(TapePlaced, DeparturesWithinATightBudget) {
  size_t refused = 0, fitted = 0;
  for (const uint32_t strategy : kStrategies)
    for (size_t at = 0; at <= 7; ++at) {
      SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + " at " + std::to_string(at));
      Net net = chain(6);
      size_t height = 0;
      {
        Session ample(with(strategy));
        know(ample, net);
        height = ample.tape->cache.find(1)->plan.prediction.height;
      }
      Session s(with(strategy, std::max(height, minimum_of(net, with(strategy)))));
      know(s, net);
      const Result expected = plain(net, s.options.seed, s.stats().step);
      void *mine = nullptr;
      const Step got = step_with(s, net, at, [&] {
        mine = ckpt_arena_alloc(s.arena, 64, 0);
        return CKPT_OK;
      });
      if (got.status) {
        ++refused;
        EXPECT_EQ(got.status, CKPT_ERROR_BUDGET) << got.text;
        EXPECT_NE(got.text.find("bytes"), std::string::npos) << got.text;
      } else {
        ++fitted;
        EXPECT_EQ(difference(got.result, expected), "");
      }
      EXPECT_LE(got.stats.arena_measured_bytes, s.options.budget + 64 * 3) << "the user's own block is beyond the tape's bound";
      EXPECT_EQ(ckpt_arena_free(s.arena, mine), CKPT_OK);
      EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
      EXPECT_EQ(good(s, net).stats.planned, 1u);
    }
  EXPECT_GT(fitted, 0u);
}

}  // namespace
