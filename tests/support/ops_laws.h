// The laws, checked on one net under one strategy: what property tests and scenarios share.
#pragma once

#include <gtest/gtest-spi.h>

#include "ops_random.h"

namespace ops {

// What gtest found wrong inside `body`, as text: so that RapidCheck can shrink.
template <class F>
std::string failures_of(F &&body) {
  ::testing::TestPartResultArray found;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &found);
    body();
  }
  std::string text;
  for (int k = 0; k < found.size(); ++k)
    if (found.GetTestPartResult(k).failed())
      text += std::string(found.GetTestPartResult(k).file_name() != nullptr ? found.GetTestPartResult(k).file_name() : "?") + ":" +
              std::to_string(found.GetTestPartResult(k).line_number()) + ": " + found.GetTestPartResult(k).message() + "\n";
  return text;
}

struct Strategy {
  uint32_t strategy = CKPT_STRATEGY_AUTO;
  uint32_t k = 0;
  std::vector<std::string> keep, recompute;

  Options options() const {
    Options o;
    o.strategy = strategy;
    o.k = k;
    for (const std::string &p : keep) o.keep.push_back(p.c_str());
    for (const std::string &p : recompute) o.recompute.push_back(p.c_str());
    return o;
  }
  std::string text() const {
    std::string t = ckpt_strategy_name(strategy);
    if (k != 0) t += ":" + std::to_string(k);
    for (const std::string &p : keep) t += " keep " + p;
    for (const std::string &p : recompute) t += " recompute " + p;
    return t;
  }
};

inline Strategy pick_strategy(const RandomNet &r, uint32_t gene) {
  const uint32_t k = 1 + gene / 16 % 5;
  switch (gene % 9) {
    case 0: return {CKPT_STRATEGY_STORE_ALL, 0, {}, {}};
    case 1: return {CKPT_STRATEGY_EVERY_SEGMENT, 0, {}, {}};
    case 2: return {CKPT_STRATEGY_SQRT, 0, {}, {}};
    case 3: return {CKPT_STRATEGY_UNIFORM, k, {}, {}};
    case 4: return {CKPT_STRATEGY_BLOCK, k, {}, {}};
    case 5: return {CKPT_STRATEGY_FULL, 0, {}, {}};
    case 6:
      if (r.slot_names.empty()) break;
      if (k % 2 == 0) return {CKPT_STRATEGY_SELECTIVE, 0, {r.slot_names[gene / 16 % r.slot_names.size()]}, {}};
      return {CKPT_STRATEGY_SELECTIVE, 0, {}, {r.slot_names[gene / 16 % r.slot_names.size()]}};
    default: break;
  }
  return {CKPT_STRATEGY_AUTO, 0, {}, {}};
}

// The smallest budget of this net under this strategy, from a dry recording with a budget of one alignment unit.
inline size_t minimum_of(Net &net, Options o) {
  o.budget = o.alignment;
  Session s(o);
  if (s.made) {
    ADD_FAILURE() << ckpt_last_error();
    return 0;
  }
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  if (dry.status == CKPT_OK) return dry.stats.arena_predicted_bytes;  // it needs nothing at all
  EXPECT_EQ(dry.status, CKPT_ERROR_BUDGET) << dry.text;
  EXPECT_NE(dry.text.find(std::to_string(dry.stats.minimum_budget_bytes)), std::string::npos) << dry.text;
  EXPECT_EQ(s.log.callbacks(), 0u);
  return dry.stats.minimum_budget_bytes;
}

// A step recorded dry, then run twice, within `budget` (0: ample).
inline void check_known(Net &net, Options o, size_t budget, bool may_recompute) {
  SCOPED_TRACE("known, budget " + std::to_string(budget));
  const HostState start(net);
  const Result first = plain(net, o.seed, 0), second = plain(net, o.seed, 1);
  start.restore(net);
  o.budget = budget;
  Session s(o);
  ASSERT_EQ(s.made, CKPT_OK) << ckpt_last_error();
  const Step dry = s.step(net, 1, CKPT_TAPE_DRY);
  ASSERT_EQ(dry.status, CKPT_OK) << dry.text;
  uint64_t at = 0;
  for (const Result *expected : {&first, &second}) {
    SCOPED_TRACE("step " + std::to_string(at));
    const Step got = s.step(net, 1);
    ASSERT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, *expected), "");
    EXPECT_EQ(got.stats.planned, 1u);
    EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
    if (budget != 0) { EXPECT_LE(got.stats.arena_measured_bytes, budget); }
    if (!may_recompute) { EXPECT_EQ(got.stats.recompute_count, 0u); }
    EXPECT_EQ(got.stats.step, ++at);
  }
  start.restore(net);
}

// The first step unknown, within `budget`; then what it taught. A budget that a known recording could be refused with may
// stop an unknown one on the way.
inline void check_unknown(Net &net, Options o, size_t budget, size_t minimum) {
  SCOPED_TRACE("unknown, budget " + std::to_string(budget));
  const HostState start(net);
  const Result first = plain(net, o.seed, 0), second = plain(net, o.seed, 1);
  start.restore(net);
  o.budget = budget;
  Session s(o);
  ASSERT_EQ(s.made, CKPT_OK) << ckpt_last_error();
  Step got = s.step(net, 0, 0, false);
  if (got.status != CKPT_OK) {
    ASSERT_EQ(got.status, CKPT_ERROR_BUDGET) << got.text;
    EXPECT_EQ(s.stats().step, 0u);
    start.restore(net);
    return;
  }
  EXPECT_EQ(difference(got.result, first), "");
  EXPECT_EQ(got.stats.planned, 0u);
  got = s.step(net, 0, 0, false);
  if (budget != 0 && budget < minimum) {
    if (got.status != CKPT_OK) { EXPECT_EQ(got.status, CKPT_ERROR_BUDGET) << got.text; }
    start.restore(net);
    return;
  }
  ASSERT_EQ(got.status, CKPT_OK) << got.text;
  EXPECT_EQ(difference(got.result, second), "");
  EXPECT_EQ(got.stats.planned, 1u);
  EXPECT_EQ(got.stats.peak_predicted_bytes, got.stats.peak_measured_bytes);
  EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
  start.restore(net);
}

inline void check_laws(RandomNet &r, const Strategy &strategy, uint32_t budget_gene, uint32_t arena_flags = CKPT_ARENA_POISON) {
  Net &net = r.net;
  Options o = strategy.options();
  o.arena_flags = arena_flags;
  const bool stores_all = strategy.strategy == CKPT_STRATEGY_AUTO || strategy.strategy == CKPT_STRATEGY_STORE_ALL;
  check_known(net, o, 0, !stores_all || r.has_again);
  const size_t minimum = minimum_of(net, o);
  if (minimum > 0) {
    check_known(net, o, minimum, true);
    if (minimum > o.alignment) {
      o.budget = minimum - o.alignment;
      Session s(o);
      const Step refused = s.step(net, 1, CKPT_TAPE_DRY);
      EXPECT_EQ(refused.status, CKPT_ERROR_BUDGET) << "a budget of " << o.budget << " was accepted, the minimum is said to be " << minimum;
      EXPECT_EQ(refused.stats.minimum_budget_bytes, minimum);
      o.budget = 0;
    }
    const size_t between = (minimum + minimum * (budget_gene % 64) / 32) / o.alignment * o.alignment;
    check_known(net, o, between, true);
    check_unknown(net, o, between, minimum);
    check_unknown(net, o, minimum, minimum);
  }
  check_unknown(net, o, 0, minimum);
}

}  // namespace ops
