// Which plan a recording follows: by key, by prefix, smaller, larger, left on the way; and plans that are looked at, adopted
// and prepared.
#include <gtest/gtest.h>

#include <chrono>

#include "../support/ops_net.h"

namespace {

using namespace ops;

Net chain(const std::vector<std::string> &kinds, size_t count = 48) {
  Net net;
  uint32_t x = net.input(count, true);
  for (size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k] == "relu") x = net.then<Relu>(x, "relu", count);
    else if (kinds[k] == "scale") x = net.then<Scale>(x, "scale", count, static_cast<uint32_t>(k));
    else x = net.then<Mlp>(x, kinds[k], count, static_cast<uint32_t>(k));
  }
  net.root(net.then<Loss>(x, "loss", count, true));
  return net;
}
std::vector<std::string> mlps(size_t n) { return std::vector<std::string>(n, "mlp"); }

// A step that must succeed and equal the plain executor's.
Step good(Session &s, Net &net, uint64_t key = 0) {
  const Result expected = plain(net, s.options.seed, s.stats().step);
  const Step got = key != 0 ? s.step(net, key) : s.step(net, 0, 0, false);
  EXPECT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, expected), "");
  return got;
}

Options with(uint32_t strategy, size_t budget = 0) {
  Options o;
  o.strategy = strategy;
  o.budget = budget;
  return o;
}

TEST(TapePlans, FoundByKey) {
  Net a = chain(mlps(4)), b = chain(mlps(7));
  Session s(with(CKPT_STRATEGY_EVERY_SEGMENT));
  EXPECT_EQ(good(s, a, 1).stats.planned, 0u);
  EXPECT_EQ(good(s, b, 2).stats.planned, 0u);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(good(s, a, 1).stats.planned, 1u);
    EXPECT_EQ(good(s, b, 2).stats.planned, 1u);
  }
}

TEST(TapePlans, SettledPlansAreNotMadeAgain) {
  Net a = chain(mlps(4));
  Session s(with(CKPT_STRATEGY_AUTO));
  for (int k = 0; k < 4; ++k) good(s, a, 1);
  const ckpt_tape_stats before = s.stats();
  for (int k = 0; k < 5; ++k) good(s, a, 1);
  EXPECT_EQ(s.stats().plan_count, before.plan_count);
  EXPECT_EQ(s.stats().plan_hit_count, before.plan_hit_count + 5);
}

TEST(TapePlans, FoundByTheLongestPrefix) {
  Net small = chain(mlps(3)), large = chain(mlps(6)), other = chain({"relu", "mlp", "mlp"});
  Session s(with(CKPT_STRATEGY_EVERY_SEGMENT));
  good(s, small);
  good(s, large);
  good(s, other);
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(good(s, large).stats.planned, 1u);
    EXPECT_EQ(good(s, small).stats.planned, 1u) << "it goes over to the plan that ends like it, on the way";
    EXPECT_EQ(good(s, other).stats.planned, 1u);
  }
}

TEST(TapePlans, SmallerSizesAreServedByThePlanLargerOnesGetANewOne) {
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO}) {
    SCOPED_TRACE(ckpt_strategy_name(strategy));
    Net middle = chain(mlps(4), 48), small = chain(mlps(4), 20), large = chain(mlps(4), 100);
    Session s(with(strategy));
    for (int k = 0; k < 3; ++k) good(s, middle, 1);
    const uint64_t plans = s.stats().plan_count;
    const Step m = good(s, middle, 1);
    const Step got = good(s, small, 1);
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    EXPECT_LT(got.stats.peak_measured_bytes, m.stats.peak_measured_bytes);
    EXPECT_EQ(s.stats().plan_count, plans) << "a smaller recording needs no plan of its own";
    EXPECT_EQ(good(s, large, 1).stats.planned, 0u);
    const Step again = good(s, large, 1);
    EXPECT_EQ(again.stats.planned, 1u);
    EXPECT_EQ(again.stats.peak_predicted_bytes, again.stats.peak_measured_bytes);
    EXPECT_GT(s.stats().plan_count, plans);
    // The large one's plan serves all.
    EXPECT_EQ(good(s, middle, 1).stats.planned, 1u);
    EXPECT_EQ(good(s, small, 1).stats.planned, 1u);
  }
}

// Recordings that leave a known plan at each place, in each way; gradients and the budget hold all the same.
TEST(TapePlans, LeavingThePlanOnTheWay) {
  const std::vector<std::string> known = mlps(6);
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT, CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL, CKPT_STRATEGY_AUTO})
    for (size_t at = 0; at <= 6; ++at)
      for (int how = 0; how < 3; ++how) {
        std::vector<std::string> kinds(known.begin(), known.begin() + static_cast<ptrdiff_t>(at));
        if (how == 0) kinds.insert(kinds.end(), {"relu", "mlp", "scale"});
        if (how == 1) kinds.insert(kinds.end(), known.size() - at + 2, "mlp");  // longer
        SCOPED_TRACE(std::string(ckpt_strategy_name(strategy)) + ", at " + std::to_string(at) + ", way " + std::to_string(how));
        Net first = chain(known), other = chain(kinds);
        Session s(with(strategy));
        for (int k = 0; k < 2; ++k) good(s, first, 1);
        const Step got = good(s, other, 1);
        if (kinds != known) { EXPECT_EQ(got.stats.planned, 0u); }
        EXPECT_EQ(good(s, other, 1).stats.planned, 1u);
        // Two structures under one key: the latest is expected, and left for the other where both plans begin alike.
        const Step back = good(s, first, 1);
        if (strategy == CKPT_STRATEGY_STORE_ALL && how != 1) { EXPECT_EQ(back.stats.planned, 1u); }
        EXPECT_EQ(good(s, first, 1).stats.planned, 1u);
      }
}

TEST(TapePlans, LeavingThePlanForADroppedSkipConnection) {
  // The plan lets x go; the next recording reads it at its end.
  for (uint32_t strategy : {CKPT_STRATEGY_SQRT, CKPT_STRATEGY_FULL}) {
    Net known = chain(mlps(6));
    Net skip;
    uint32_t x = skip.input(48, true);
    std::vector<uint32_t> values;
    for (uint32_t k = 0; k < 6; ++k) values.push_back(x = skip.then<Mlp>(x, "mlp", size_t{48}, k));
    x = skip.add(skip.make<Mul>("skip", size_t{48}), {x, values[1]});
    x = skip.add(skip.make<Mul>("skip", size_t{48}), {x, values[3]});
    skip.root(skip.then<Loss>(x, "loss", size_t{48}, true));
    Session s(with(strategy));
    good(s, known, 1);
    good(s, known, 1);
    const Step got = good(s, skip, 1);
    EXPECT_EQ(got.stats.planned, 0u);
    EXPECT_GT(got.stats.recompute_count, 0u);
    EXPECT_EQ(good(s, skip, 1).stats.planned, 1u);
  }
}

TEST(TapePlans, SegmentsMadeAnewEachStep) {
  // Equal structures from new segments: the plan is found, and nothing of the old segments is touched.
  Net middle = chain(mlps(4), 48), small = chain(mlps(4), 20), longer = chain(mlps(6), 20);
  Session s(with(CKPT_STRATEGY_EVERY_SEGMENT));
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(good(s, middle, 1).stats.planned, k == 0 ? 0u : 1u);
    s.forget_segments();
    EXPECT_EQ(good(s, small, 1).stats.planned, 1u);
    s.forget_segments();
    EXPECT_EQ(good(s, longer, 0).stats.planned, k == 0 ? 0u : 1u);
    s.forget_segments();
  }
}

TEST(TapePlans, GoingOverToAnotherPlanWithSmallerSizes) {
  // The first segment is smaller than both plans have it, the others are equal; the longer plan is left for the shorter one.
  const auto bottleneck = [](size_t width, uint32_t blocks) {
    Net net;
    uint32_t x = net.then<Linear>(net.input(48, true), "down", size_t{1}, size_t{48}, width);
    x = net.then<Linear>(x, "up", size_t{1}, width, size_t{48});
    for (uint32_t k = 0; k < blocks; ++k) x = net.then<Mlp>(x, "mlp", size_t{48}, k);
    net.root(net.then<Loss>(x, "loss", size_t{48}, true));
    return net;
  };
  Net small = bottleneck(40, 2), large = bottleneck(40, 4), narrow = bottleneck(8, 2);
  Session s(with(CKPT_STRATEGY_EVERY_SEGMENT));
  for (Net *net : {&small, &large}) {
    ASSERT_EQ(s.step(*net, 0, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
    s.forget_segments();
  }
  for (int k = 0; k < 3; ++k) {
    const uint64_t hits = s.stats().plan_hit_count;
    const Step got = good(s, narrow);
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(s.stats().plan_hit_count, hits + 1) << "the longer one first, then the shorter: one recording";
    s.forget_segments();
  }
  // What it teaches is learnt: with another root it has another backward, the second time a known one.
  narrow.root(2, std::vector<float>(48, 0.5f));
  EXPECT_EQ(good(s, narrow).stats.planned, 0u);
  s.forget_segments();
  EXPECT_EQ(good(s, narrow).stats.planned, 1u);
}

TEST(TapePlans, GoingOverToALargerPlanKeepsTheRecordingsOwnSizes) {
  // It is exactly like the first plan until it goes on like the second, which was made for larger sizes. An input that
  // nobody reads gets zeros: as many as it has room for.
  const auto make = [](size_t count, bool relu) {
    Net net;
    net.input(count, true, 5);
    uint32_t x = net.input(count, true);
    for (uint32_t k = 0; k < 2; ++k) x = net.then<Mlp>(x, "mlp", count, k);
    if (relu) x = net.then<Relu>(x, "relu", count);
    net.root(net.then<Loss>(x, "loss", count, true));
    return net;
  };
  for (uint32_t strategy : {CKPT_STRATEGY_STORE_ALL, CKPT_STRATEGY_EVERY_SEGMENT}) {
    Net small = make(20, false), large = make(4000, true), both = make(20, true);
    Session s(with(strategy));
    ASSERT_EQ(s.step(small, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
    ASSERT_EQ(s.step(large, 2, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
    s.log.inside = [](ckpt_frame *f, Layer &layer) {
      if (layer.spec.name != "loss") { EXPECT_EQ(ckpt_frame_bytes(f, CKPT_FRAME_INPUT, 0), 80u) << layer.spec.name; }
    };
    const Step got = good(s, both, 1);
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_LT(got.stats.peak_measured_bytes, 4000u);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  }
}

TEST(TapePlans, CacheHoldsSixteen) {
  Session s(with(CKPT_STRATEGY_STORE_ALL));
  std::vector<Net> nets;
  for (size_t k = 0; k < 17; ++k) nets.push_back(chain(mlps(2 + k)));
  for (size_t k = 0; k < 16; ++k) good(s, nets[k], k + 1);
  for (size_t k = 0; k < 16; ++k) EXPECT_EQ(good(s, nets[k], k + 1).stats.planned, 1u) << k;
  good(s, nets[16], 17);
  ckpt_chain *chain = nullptr;
  EXPECT_EQ(ckpt_tape_chain(s.tape, 1, &chain), CKPT_ERROR_NOT_FOUND) << "the one used longest ago has gone";
  EXPECT_EQ(ckpt_tape_chain(s.tape, 2, &chain), CKPT_OK);
  ckpt_chain_destroy(chain);
}

TEST(TapePlans, ReplanNeverKeepsThePlanUntilALargerRecording) {
  Net net = chain(mlps(5)), large = chain(mlps(5), 100);
  Options o = with(CKPT_STRATEGY_AUTO);
  o.replan = CKPT_REPLAN_NEVER;
  Session s(o);
  ASSERT_EQ(s.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
  const uint64_t plans = s.stats().plan_count;
  for (int k = 0; k < 5; ++k) EXPECT_EQ(good(s, net, 1).stats.planned, 1u);
  EXPECT_EQ(s.stats().plan_count, plans);
  good(s, large, 1);
  good(s, large, 1);
  EXPECT_GT(s.stats().plan_count, plans);
}

TEST(TapePlans, ChainAndPlanOfAKnownRecording) {
  Net net = chain(mlps(5));
  Session s(with(CKPT_STRATEGY_EVERY_SEGMENT));
  ckpt_chain *chain = nullptr;
  ckpt_plan *plan = nullptr;
  EXPECT_EQ(ckpt_tape_chain(s.tape, 1, &chain), CKPT_ERROR_NOT_FOUND);
  EXPECT_EQ(ckpt_tape_plan(s.tape, 1, &plan), CKPT_ERROR_NOT_FOUND);
  EXPECT_NE(std::string(ckpt_last_error()).find("key 1"), std::string::npos) << ckpt_last_error();
  EXPECT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_ERROR_NOT_FOUND);
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
  ASSERT_EQ(ckpt_tape_chain(s.tape, 1, &chain), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(ckpt_chain_segment_count(chain), net.nodes.size());
  ASSERT_EQ(ckpt_tape_plan(s.tape, 1, &plan), CKPT_OK) << ckpt_last_error();
  ckpt_plan_summary summary{};
  summary.struct_size = sizeof summary;
  ASSERT_EQ(ckpt_plan_get_summary(plan, &summary), CKPT_OK);
  EXPECT_EQ(summary.strategy, uint32_t{CKPT_STRATEGY_EVERY_SEGMENT});
  EXPECT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_OK) << ckpt_last_error();
  const Step got = good(s, net, 1);
  EXPECT_EQ(got.stats.planned, 1u);
  EXPECT_EQ(got.stats.peak_measured_bytes, summary.peak_bytes);
  EXPECT_EQ(got.stats.arena_measured_bytes, summary.arena_bytes);
  EXPECT_EQ(got.stats.held_bytes, summary.held_bytes);
  EXPECT_EQ(got.stats.recompute_count, summary.recompute_count);
  // The planner, asked directly, says the same of the same chain.
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  d.strategy = CKPT_STRATEGY_EVERY_SEGMENT;
  ckpt_plan *direct = nullptr;
  ASSERT_EQ(ckpt_plan_create(chain, &d, &direct), CKPT_OK) << ckpt_last_error();
  ckpt_plan_summary other{};
  other.struct_size = sizeof other;
  ASSERT_EQ(ckpt_plan_get_summary(direct, &other), CKPT_OK);
  EXPECT_EQ(other.arena_bytes, summary.arena_bytes);
  EXPECT_EQ(other.hash, summary.hash);
  ckpt_plan_destroy(direct);
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(chain);
}

TEST(TapePlans, AdoptedPlansAreFollowed) {
  Net net = chain(mlps(5));
  Session from(with(CKPT_STRATEGY_FULL)), to(with(CKPT_STRATEGY_STORE_ALL));
  ASSERT_EQ(from.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK);
  ASSERT_EQ(to.step(net, 9, CKPT_TAPE_DRY).status, CKPT_OK);
  ckpt_plan *plan = nullptr;
  ASSERT_EQ(ckpt_tape_plan(from.tape, 1, &plan), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(ckpt_tape_adopt(to.tape, 8, plan), CKPT_ERROR_NOT_FOUND);
  ASSERT_EQ(ckpt_tape_adopt(to.tape, 9, plan), CKPT_OK) << ckpt_last_error();
  for (int k = 0; k < 4; ++k) {
    const Step got = good(to, net, 9);
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_GT(got.stats.recompute_count, 0u) << "store_all would recompute nothing";
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  }
  // Of another structure.
  Net other = chain(mlps(4));
  ASSERT_EQ(to.step(other, 10, CKPT_TAPE_DRY).status, CKPT_OK);
  EXPECT_EQ(ckpt_tape_adopt(to.tape, 10, plan), CKPT_ERROR_INVALID_PLAN);
  // Too large for the budget.
  ckpt_plan *large = nullptr;
  Session all(with(CKPT_STRATEGY_STORE_ALL));
  const Step dry = all.step(net, 1, CKPT_TAPE_DRY);
  ASSERT_EQ(ckpt_tape_plan(all.tape, 1, &large), CKPT_OK);
  Session tight(with(CKPT_STRATEGY_AUTO, dry.stats.arena_predicted_bytes - 64));
  ASSERT_EQ(tight.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(ckpt_tape_adopt(tight.tape, 1, large), CKPT_ERROR_BUDGET);
  EXPECT_NE(std::string(ckpt_last_error()).find(std::to_string(dry.stats.arena_predicted_bytes)), std::string::npos) << ckpt_last_error();
  // Not while something is recorded.
  ASSERT_EQ(ckpt_tape_begin(tight.tape, 1, 0), CKPT_OK);
  EXPECT_EQ(ckpt_tape_adopt(tight.tape, 1, plan), CKPT_ERROR_STATE);
  EXPECT_EQ(ckpt_tape_prepare(tight.tape, 1), CKPT_ERROR_STATE);
  ckpt_plan_destroy(plan);
  ckpt_plan_destroy(large);
}

TEST(TapePlans, KnownRefusalComesAtBeginAndNothingRuns) {
  Net net = chain(mlps(5));
  Session ample(with(CKPT_STRATEGY_AUTO));
  Session s(with(CKPT_STRATEGY_AUTO, 512));
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  EXPECT_EQ(dry.status, CKPT_ERROR_BUDGET);
  EXPECT_EQ(ckpt_tape_begin(s.tape, 1, 0), CKPT_ERROR_BUDGET);
  const std::string text = ckpt_last_error();
  EXPECT_NE(text.find(std::to_string(dry.stats.minimum_budget_bytes)), std::string::npos) << text;
  EXPECT_NE(text.find("512"), std::string::npos) << text;
  EXPECT_EQ(s.log.callbacks(), 0u);
  // By prefix, without begin.
  EXPECT_EQ(s.step(net, 0, 0, false).status, CKPT_ERROR_BUDGET);
  EXPECT_EQ(s.log.callbacks(), 0u);
  EXPECT_EQ(ckpt_tape_prepare(s.tape, 1), CKPT_ERROR_BUDGET);
}

TEST(TapePlans, CostsOfWhatFollowedAPlanAreKeptWhenItIsLeft) {
  // Each forward of "slow" takes a millisecond at least. Two measured steps settle its cost; a recording that leaves the plan
  // after it must not take it for free.
  constexpr double kLeast = 1e-3;
  const auto make = [](uint32_t extra) {
    Net net;
    auto *slow = net.make<Custom>("slow");
    slow->spec.outputs = {{.name = "y", .bytes = floats(8)}};
    slow->spec.input_flags = {CKPT_INPUT_BACKWARD_IGNORES};
    slow->run_forward = [](View &f) {
      const auto start = std::chrono::steady_clock::now();
      if (f.needs_output(0)) std::memcpy(f.output(0), f.input(0), floats(8));
      while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < kLeast) {}
    };
    slow->run_backward = [](View &f) {
      bool add = false;
      float *dx = static_cast<float *>(f.input_grad(0, &add));
      for (size_t k = 0; k < 8; ++k) put(dx, k, f.fgrad(0)[k], add);
    };
    uint32_t x = net.add(slow, {net.input(8, true)});
    for (uint32_t k = 0; k < extra; ++k) x = net.then<Mlp>(x, "mlp", size_t{8}, k);
    net.root(net.then<Loss>(x, "loss", size_t{8}, true));
    return net;
  };
  const auto forward_seconds = [](Session &s, uint64_t key) {
    ckpt_plan *plan = nullptr;
    EXPECT_EQ(ckpt_tape_plan(s.tape, key, &plan), CKPT_OK) << ckpt_last_error();
    ckpt_plan_summary summary{};
    summary.struct_size = sizeof summary;
    EXPECT_EQ(ckpt_plan_get_summary(plan, &summary), CKPT_OK);
    ckpt_plan_destroy(plan);
    return summary.forward_seconds;
  };
  Net known = make(1), longer = make(3);
  Session s(with(CKPT_STRATEGY_STORE_ALL));
  for (int k = 0; k < 4; ++k) good(s, known, 1);
  EXPECT_GE(forward_seconds(s, 1), kLeast);
  for (int k = 0; k < 4; ++k) {
    good(s, longer, 2);
    EXPECT_GE(forward_seconds(s, 2), kLeast) << "step " << k;
  }
}

TEST(TapePlans, RootsMayChangeFromStepToStep) {
  Net net = chain(mlps(4));
  const uint32_t inner = 3;  // the value of the third mlp
  Session s(with(CKPT_STRATEGY_EVERY_SEGMENT));
  for (int k = 0; k < 3; ++k) good(s, net, 1);
  net.root(inner, std::vector<float>(48, 0.5f));
  EXPECT_EQ(good(s, net, 1).stats.planned, 0u) << "another backward than the plan's";
  EXPECT_EQ(good(s, net, 1).stats.planned, 1u);
  net.roots.pop_back();
  good(s, net, 1);
}

}  // namespace
