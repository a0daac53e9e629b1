// The laws over a tape's life: random steps of related nets in random order on one tape, by key and by prefix, dry, read,
// released, retained, detached, without backward, abandoned and failing, beside blocks of the user's, within a random budget. Whatever happens, a step
// that succeeds has the plain executor's bits, and after each one the arena is empty and the budget was kept.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../support/ops_laws.h"

namespace {

using namespace ops;

struct Act {
  uint32_t net, how, key, detail;
};

std::vector<ckpt_buffer> roots_of(const Net &net, const std::vector<ckpt_buffer> &buffers) {
  std::vector<ckpt_buffer> r;
  for (const NetRoot &root : net.roots) r.push_back(buffers[root.value]);
  return r;
}

ckpt_status detached_backward(Session &s, Net &net) {
  ckpt_recording *recording = nullptr;
  const auto roots = roots_of(net, s.buffers);
  std::vector<const void *> grads;
  for (const NetRoot &r : net.roots) grads.push_back(r.grad.empty() ? nullptr : r.grad.data());
  if (const ckpt_status bad = ckpt_tape_detach(s.tape, &recording); bad) return bad;
  const ckpt_status status = ckpt_recording_backward(recording, roots.data(), grads.data(), static_cast<uint32_t>(roots.size()), 0);
  ckpt_recording_destroy(recording);
  return status;
}

// What the act wants of a step that has been recorded; *whole: there is a result to compare.
ckpt_status finish(Session &s, Net &net, const Act &act, bool *whole) {
  const size_t first = net.inputs.size();
  const uint32_t v = static_cast<uint32_t>(act.detail % net.value_count());
  const void *data = nullptr;
  switch (act.how % 8) {
    case 1:
      if (const ckpt_status bad = ckpt_tape_read(s.tape, s.buffers[v], &data); bad) return bad;
      if (act.detail % 3 == 0) { EXPECT_EQ(ckpt_tape_release(s.tape, s.buffers[v]), CKPT_OK); }
      break;
    case 2:
      if (v >= first && std::none_of(net.roots.begin(), net.roots.end(), [&](const NetRoot &r) { return r.value == v; })) { EXPECT_EQ(ckpt_tape_release(s.tape, s.buffers[v]), CKPT_OK); }
      break;
    case 3: return detached_backward(s, net);
    case 4:
      if (const ckpt_status bad = s.backward(net, CKPT_BACKWARD_RETAIN); bad) return bad;
      net.zero_grads();
      break;
    case 5: *whole = false; return ckpt_tape_reset(s.tape);
    default: break;
  }
  return s.backward(net);
}

void act_on(Session &s, RandomNet &r, const Act &act, bool dry) {
  Net &net = r.net;
  const HostState before(net);
  const uint64_t step = s.stats().step;
  const Result expected = plain(net, s.options.seed, step);
  const HostState after(net);
  before.restore(net);
  net.zero_grads();
  s.log.fail_in = act.how % 8 == 6 ? static_cast<int64_t>(act.detail % 40) : -1;
  EXPECT_EQ(ckpt_arena_reset_stats(s.arena), CKPT_OK);
  bool whole = !dry;
  // A block of the user's own on the same arena: there before the step, or from the middle of it on.
  void *mine = nullptr;
  const size_t own = act.key < 3 || dry ? 0 : 64 * (1 + act.detail % 3);
  const auto take_mine = [&] {
    mine = ckpt_arena_alloc(s.arena, own, act.detail % 5 == 0 ? uint32_t{CKPT_ARENA_HIGH} : 0u);
    EXPECT_NE(mine, nullptr);
  };
  if (own != 0 && act.detail % 2 == 0) take_mine();
  ckpt_status status = act.key % 3 != 0 ? ckpt_tape_begin(s.tape, act.key % 3, dry ? uint32_t{CKPT_TAPE_DRY} : 0u) : dry ? ckpt_tape_begin(s.tape, 0, CKPT_TAPE_DRY) : CKPT_OK;
  if (!status) status = s.forward(net, act.how % 8 == 5 ? act.detail % (net.nodes.size() + 1) : SIZE_MAX);
  if (own != 0 && mine == nullptr) take_mine();
  if (!status) status = dry ? s.backward(net) : finish(s, net, act, &whole);
  const bool failed = act.how % 8 == 6 && s.log.fail_in < 0;
  s.log.fail_in = -1;
  if (status) {
    const std::string text = ckpt_last_error();
    EXPECT_TRUE(status == CKPT_ERROR_BUDGET || (failed && status == 77) || (status == CKPT_ERROR_CONFLICT && act.how % 8 == 4)) << status << ": " << text;
    EXPECT_EQ(ckpt_tape_reset(s.tape), CKPT_OK);
    EXPECT_LE(s.stats().step, step + (act.how % 8 == 3 ? 1u : 0u));
    before.restore(net);
  } else if (whole) {
    EXPECT_EQ(difference(collect(net), expected), "");
    EXPECT_EQ(s.stats().step, step + 1);
    const ckpt_tape_stats stats = s.stats();
    if (stats.planned && act.how % 8 != 1 && act.how % 8 != 4) {
      EXPECT_EQ(stats.peak_predicted_bytes, stats.peak_measured_bytes);
      EXPECT_EQ(stats.arena_predicted_bytes, stats.arena_measured_bytes);
    }
    after.restore(net);
  } else {
    before.restore(net);
  }
  EXPECT_EQ(s.log.violation, "");
  EXPECT_EQ(ckpt_arena_free(s.arena, mine), CKPT_OK);
  EXPECT_EQ(s.arena_stats().in_use_bytes, 0u);
  EXPECT_LE(s.arena_stats().height_bytes, s.stats().budget_bytes + (own != 0 ? own + 2 * s.options.alignment : 0));  // his own is not the tape's to bound
  for (const Use &u : s.uses()) EXPECT_EQ(u.released, 1);
  s.uses().clear();
  s.log.violation.clear();
}

RC_GTEST_PROP(LawsMixed, HoldOverATapesLife, ()) {
  // Nets that begin alike: the genes of one, cut and changed.
  const auto genes = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 4096));
  std::vector<RandomNet> nets;
  nets.push_back(random_net(genes));
  for (int k = 0; k < 2; ++k) {
    auto other = genes;
    if (!other.empty()) other.resize(*rc::gen::inRange<size_t>(0, other.size() + 1));
    const auto tail = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 4096));
    other.insert(other.end(), tail.begin(), tail.begin() + static_cast<ptrdiff_t>(std::min<size_t>(tail.size(), 12)));
    nets.push_back(random_net(other));
  }
  Strategy strategy = pick_strategy(nets[0], *rc::gen::inRange<uint32_t>(0, 4096));
  if (strategy.strategy == CKPT_STRATEGY_SELECTIVE) strategy = {};  // its patterns are the first net's
  const auto raw = *rc::gen::container<std::vector<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>>>(
      rc::gen::tuple(rc::gen::inRange<uint32_t>(0, 3), rc::gen::inRange<uint32_t>(0, 16), rc::gen::inRange<uint32_t>(0, 6), rc::gen::inRange<uint32_t>(0, 1000)));
  const uint32_t budget_gene = *rc::gen::inRange<uint32_t>(0, 64);
  const bool never = *rc::gen::arbitrary<bool>(), guards = *rc::gen::arbitrary<bool>();
  const std::string found = failures_of([&] {
    Options o = strategy.options();
    o.replan = never ? CKPT_REPLAN_NEVER : CKPT_REPLAN_AUTO;
    o.arena_flags = CKPT_ARENA_POISON | (guards ? uint32_t{CKPT_ARENA_GUARD} : 0u);
    if (budget_gene % 4 != 0) {
      const size_t minimum = minimum_of(nets[0].net, o);
      o.budget = std::max<size_t>(o.alignment, (minimum + minimum * (budget_gene % 16) / 8) / o.alignment * o.alignment);
    }
    Session s(o);
    if (s.made) {
      ADD_FAILURE() << ckpt_last_error();
      return;
    }
    for (const auto &[net, how, key, detail] : raw) act_on(s, nets[net], {net, how, key, detail}, how % 8 == 7);
  });
  if (!found.empty()) RC_FAIL(strategy.text() + "\n" + found);
}

}  // namespace
