// One plan for all ranks: they measure different costs, rank 0 plans, all adopt; from then on they do the same.
#include <gtest/gtest.h>

#include "../support/ops_net.h"
#include "tape/places.h"
#include "tape/tape.h"

namespace {

using namespace ops;

constexpr uint32_t kSegments = 8;

Net chain() {
  Net net;
  uint32_t x = net.input(48, true);
  for (uint32_t k = 0; k < kSegments; ++k) x = net.then<Mlp>(x, "mlp", size_t{48}, k);
  net.root(net.then<Loss>(x, "loss", size_t{48}, true));
  return net;
}

struct Rank {
  Net net = chain();
  double clock = 0, tick;
  Session session;

  Rank(const Options &o, double seconds) : tick(seconds), session(o) {
    session.tape->clock = [](void *user) {
      auto *rank = static_cast<Rank *>(user);
      rank->tick = rank->tick * 1.01;  // so that no two costs are the same, nor those of two ranks
      return rank->clock += rank->tick;
    };
    session.tape->clock_user = this;
    EXPECT_EQ(session.step(net, 1, CKPT_TAPE_DRY).status, CKPT_OK) << ckpt_last_error();
  }
  Step good() {
    const Result expected = plain(net, session.options.seed, session.stats().step);
    const Step got = session.step(net, 1);
    EXPECT_EQ(got.status, CKPT_OK) << got.text;
    EXPECT_EQ(difference(got.result, expected), "");
    EXPECT_EQ(got.stats.planned, 1u);
    return got;
  }
  ckpt_chain *chain_now() {
    ckpt_chain *c = nullptr;
    EXPECT_EQ(ckpt_tape_chain(session.tape, 1, &c), CKPT_OK) << ckpt_last_error();
    return c;
  }
  uint64_t hash() {
    ckpt_plan *plan = nullptr;
    EXPECT_EQ(ckpt_tape_plan(session.tape, 1, &plan), CKPT_OK) << ckpt_last_error();
    const uint64_t hash = ckpt_plan_hash(plan);
    ckpt_plan_destroy(plan);
    return hash;
  }
  const ckpt::plan::Planned &plan() { return session.tape->cache.find(1)->plan; }

  // `count` recordings, at most `in_flight` at once; false: something failed.
  bool pipeline(uint32_t in_flight, uint64_t count) {
    struct Flight {
      ckpt_recording *recording = nullptr;
      ckpt_buffer root = 0;
      Result expected;
    };
    std::vector<Flight> flights(count);
    EXPECT_EQ(ckpt_arena_reset_stats(session.arena), CKPT_OK);
    const auto backward = [&](Flight &f) {
      net.zero_grads();
      const ckpt_status status = ckpt_recording_backward(f.recording, &f.root, nullptr, 1, 0);
      EXPECT_EQ(status, CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(difference(collect(net), f.expected), "");
      ckpt_recording_destroy(f.recording);
      return status == CKPT_OK;
    };
    for (uint64_t k = 0; k < count; ++k) {
      Flight &f = flights[k];
      f.expected = plain(net, session.options.seed, session.stats().step);
      if (ckpt_tape_begin(session.tape, 1, 0) != CKPT_OK || session.forward(net) != CKPT_OK) return false;
      f.root = session.buffers.back();
      if (ckpt_tape_detach(session.tape, &f.recording) != CKPT_OK) return false;
      if (k + 1 >= in_flight && !backward(flights[k + 1 - in_flight])) return false;
    }
    for (uint64_t k = count + 1 - in_flight; k < count; ++k)
      if (!backward(flights[k])) return false;
    session.uses().clear();
    return true;
  }
};

void equal_actions(const ckpt_plan *a, const ckpt_plan *b) {
  ckpt_plan_summary x{}, y{};
  x.struct_size = y.struct_size = sizeof x;
  ASSERT_EQ(ckpt_plan_get_summary(a, &x), CKPT_OK);
  ASSERT_EQ(ckpt_plan_get_summary(b, &y), CKPT_OK);
  ASSERT_EQ(x.action_count, y.action_count);
  std::vector<ckpt_action> p(x.action_count), q(x.action_count);
  ASSERT_EQ(ckpt_plan_get_actions(a, 0, x.action_count, sizeof(ckpt_action), p.data()), CKPT_OK);
  ASSERT_EQ(ckpt_plan_get_actions(b, 0, x.action_count, sizeof(ckpt_action), q.data()), CKPT_OK);
  EXPECT_EQ(std::memcmp(p.data(), q.data(), p.size() * sizeof(ckpt_action)), 0);
}

size_t budget_of(uint32_t in_flight, double part) {
  Options all;
  all.strategy = CKPT_STRATEGY_STORE_ALL;
  all.in_flight = in_flight;
  Session s(all);
  Net net = chain();
  const size_t height = s.step(net, 1, CKPT_TAPE_DRY).stats.arena_predicted_bytes;
  return static_cast<size_t>(part * static_cast<double>(height)) / all.alignment * all.alignment;
}

TEST(TapeRanks, AdoptOnePlan) {
  for (const uint32_t in_flight : {1u, 2u, 3u})
    for (const double part : {0.6, 0.8, 1.0}) {
      SCOPED_TRACE(std::to_string(in_flight) + " in flight, " + std::to_string(part) + " of store_all");
      Options o;
      o.replan = CKPT_REPLAN_NEVER;
      o.in_flight = in_flight;
      o.budget = budget_of(in_flight, part);
      o.arena_flags = CKPT_ARENA_POISON;
      Rank zero(o, 1e-4), one(o, 3e-3);
      for (Rank *r : {&zero, &one}) {
        r->good();
        r->good();
      }
      ckpt_chain *a = zero.chain_now(), *b = one.chain_now();
      EXPECT_EQ(ckpt_chain_hash(a), ckpt_chain_hash(b)) << "structure and sizes, not seconds";
      ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
      d.budget_bytes = o.budget;
      d.in_flight_count = in_flight;
      ckpt_plan *made = nullptr, *sent = nullptr;
      ASSERT_EQ(ckpt_plan_create(a, &d, &made), CKPT_OK) << ckpt_last_error();
      // What rank 0 sends is the actions.
      ckpt_plan_summary summary{};
      summary.struct_size = sizeof summary;
      ASSERT_EQ(ckpt_plan_get_summary(made, &summary), CKPT_OK);
      std::vector<ckpt_action> actions(summary.action_count);
      ASSERT_EQ(ckpt_plan_get_actions(made, 0, summary.action_count, sizeof(ckpt_action), actions.data()), CKPT_OK);
      ASSERT_EQ(ckpt_plan_from_actions(b, actions.data(), summary.action_count, sizeof(ckpt_action), in_flight, o.budget, &sent), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(ckpt_plan_hash(made), ckpt_plan_hash(sent));
      equal_actions(made, sent);
      ASSERT_EQ(ckpt_tape_adopt(zero.session.tape, 1, made), CKPT_OK) << ckpt_last_error();
      ASSERT_EQ(ckpt_tape_adopt(one.session.tape, 1, sent), CKPT_OK) << ckpt_last_error();
      EXPECT_EQ(zero.hash(), ckpt_plan_hash(made));
      EXPECT_EQ(one.hash(), ckpt_plan_hash(made));
      EXPECT_EQ(zero.plan().offsets, one.plan().offsets);
      EXPECT_EQ(zero.plan().offsets.empty(), in_flight > 1);
      EXPECT_EQ(zero.plan().prediction.height, summary.arena_bytes);
      EXPECT_EQ(one.plan().prediction.height, summary.arena_bytes);
      for (uint32_t k = 0; k < 70; ++k) {  // past the first measurement that AUTO would make
        const Step x = zero.good(), y = one.good();
        EXPECT_EQ(x.stats.recompute_count, y.stats.recompute_count);
        EXPECT_EQ(x.stats.arena_measured_bytes, y.stats.arena_measured_bytes);
        EXPECT_EQ(x.stats.peak_measured_bytes, y.stats.peak_measured_bytes);
        if (in_flight == 1) { EXPECT_EQ(x.stats.arena_measured_bytes, summary.arena_bytes); }
      }
      for (Rank *r : {&zero, &one}) {
        EXPECT_TRUE(r->pipeline(in_flight, 3 * in_flight));
        EXPECT_EQ(r->session.arena_stats().height_bytes, summary.arena_bytes);
        EXPECT_EQ(r->hash(), ckpt_plan_hash(made));
      }
      ckpt_plan_destroy(made);
      ckpt_plan_destroy(sent);
      ckpt_chain_destroy(a);
      ckpt_chain_destroy(b);
    }
}

TEST(TapeRanks, APlanForFewerInFlightMayBeTooLarge) {
  Options o;
  o.in_flight = 3;
  o.budget = budget_of(1, 1.0);
  Rank rank(o, 1e-3);
  ckpt_chain *c = rank.chain_now();
  ckpt_plan_desc d = CKPT_PLAN_DESC_INIT;
  d.budget_bytes = o.budget;
  ckpt_plan *plan = nullptr;
  ASSERT_EQ(ckpt_plan_create(c, &d, &plan), CKPT_OK) << ckpt_last_error();
  EXPECT_EQ(ckpt_tape_adopt(rank.session.tape, 1, plan), CKPT_ERROR_BUDGET);
  EXPECT_NE(std::string(ckpt_last_error()).find(std::to_string(o.budget)), std::string::npos) << ckpt_last_error();
  EXPECT_EQ(rank.good().stats.planned, 1u) << "the plan that was there stays";
  ckpt_plan_destroy(plan);
  ckpt_chain_destroy(c);
}

// Places that do not hold this step's blocks are chosen anew.
TEST(TapeRanks, PlacesThatDoNotFitAreNotTaken) {
  Options o;
  o.arena_flags = CKPT_ARENA_GUARD | CKPT_ARENA_POISON;
  Rank rank(o, 1e-3);
  ckpt_plan *plan = nullptr;
  ASSERT_EQ(ckpt_tape_plan(rank.session.tape, 1, &plan), CKPT_OK) << ckpt_last_error();
  const std::vector<size_t> good = plan->planned.offsets;
  ASSERT_FALSE(good.empty());
  const auto adopt = [&](std::vector<size_t> offsets) {
    plan->planned.offsets = std::move(offsets);
    ASSERT_EQ(ckpt_tape_adopt(rank.session.tape, 1, plan), CKPT_OK) << ckpt_last_error();
    const Step got = rank.good();
    EXPECT_EQ(got.stats.arena_measured_bytes, rank.plan().prediction.height);
    EXPECT_EQ(got.stats.arena_predicted_bytes, got.stats.arena_measured_bytes);
  };
  adopt(good);
  EXPECT_EQ(rank.plan().offsets, good);
  adopt({});
  EXPECT_FALSE(rank.plan().offsets.empty());
  adopt(std::vector<size_t>(good.size(), 0));  // all in one place
  EXPECT_NE(rank.plan().offsets, std::vector<size_t>(good.size(), 0));
  std::vector<size_t> odd = good;
  for (size_t &offset : odd) offset += 1;
  adopt(odd);
  EXPECT_NE(rank.plan().offsets, odd);
  std::vector<size_t> higher = good;
  for (size_t &offset : higher) offset += 10 * o.alignment;  // wasteful, but nothing overlaps
  adopt(higher);
  EXPECT_EQ(rank.plan().offsets, higher);
  ckpt_plan_destroy(plan);
}

TEST(TapeRanks, Fit) {
  using ckpt::plan::Block;
  const auto block = [](uint32_t first, uint32_t end, size_t bytes) {
    Block b;
    b.first_action = first;
    b.end_action = end;
    b.bytes = bytes;
    return b;
  };
  const std::vector<Block> blocks = {block(0, 3, 128), block(1, 2, 64), block(1, 4, 0), block(2, 5, 64), block(3, 3, 64)};
  const auto fits = [&](const std::vector<size_t> &offsets, size_t expected) {
    size_t height = 0;
    const bool yes = ckpt::tape::fit(blocks, offsets, 64, &height);
    if (yes) { EXPECT_EQ(height, expected); }
    return yes;
  };
  EXPECT_TRUE(fits({0, 128, 0, 128, 0}, 192)) << "one goes as the next comes";
  EXPECT_TRUE(fits({64, 0, 7, 0, 64}, 192));
  EXPECT_FALSE(fits({0, 64, 0, 128, 0}, 0)) << "from above";
  EXPECT_FALSE(fits({64, 64, 0, 0, 64}, 0));
  EXPECT_FALSE(fits({0, 128, 0, 128, 128}, 0)) << "even for a moment";
  EXPECT_FALSE(fits({0, 128, 0, 128}, 0)) << "one for each";
  EXPECT_FALSE(fits({0, 128, 0, 130, 0}, 0)) << "aligned";
  EXPECT_FALSE(fits({0, SIZE_MAX - 63, 0, 128, 0}, 0));
}

}  // namespace
