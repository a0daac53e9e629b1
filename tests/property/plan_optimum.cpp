// Small chains against brute force: Dijkstra over all states of the machine as the documentation has it (which boundaries,
// which slots, how far forward and backward came), written for chains and for nothing else. No program may be faster; AUTO
// finds the optimum, or comes near it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <queue>
#include <tuple>

#include "plan/make_plan.h"
#include "unit/plan_chains.h"

namespace ckpt::plan {
namespace {

using testing::ChainOf;
using testing::Segment;

constexpr uint32_t kMaxSlots = 2;

struct SlotModel {
  uint32_t bytes, cost;
  uint32_t reads;  // mask
  bool needed;
};
struct SegmentModel {
  std::vector<SlotModel> slots;
  uint32_t output_bytes, output_cost, output_reads, backward_cost, forward_scratch, backward_scratch;
  bool reads_input, reads_output;
};

// Time and memory of `forward i` that wants `slots` (and the output) with `live` there.
struct Call {
  uint32_t todo = 0, bytes = 0, cost = 0;
};
Call call(const SegmentModel &s, uint32_t live, uint32_t slots, bool output) {
  Call c;
  uint32_t open = (slots | (output ? s.output_reads : 0)) & ~live;
  for (uint32_t k = static_cast<uint32_t>(s.slots.size()); k-- > 0;) {
    if (!(open >> k & 1)) continue;
    c.todo |= 1u << k;
    c.bytes += s.slots[k].bytes;
    c.cost += s.slots[k].cost;
    open |= s.slots[k].reads & ~live;
  }
  if (output) {
    c.bytes += s.output_bytes;
    c.cost += s.output_cost;
  }
  if (c.todo != 0 || output) c.bytes += s.forward_scratch;
  return c;
}

// The least time within `budget` bytes of live load; -1: none.
int brute_force(const std::vector<SegmentModel> &chain, uint32_t budget) {
  const auto n = static_cast<uint32_t>(chain.size());
  // Boundaries (bit i: the output of segment i - 1; the input is the caller's), slots, forward done, backward left.
  using State = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  std::map<State, int> best;
  std::priority_queue<std::pair<int, State>, std::vector<std::pair<int, State>>, std::greater<>> queue;
  const auto load = [&](const State &s) {
    const auto &[boundaries, slots, run, left] = s;
    uint32_t sum = left < n && left > 0 ? chain[left - 1].output_bytes : 0;  // the gradient of boundary `left`
    for (uint32_t i = 0; i < n; ++i) {
      if (boundaries >> (i + 1) & 1) sum += chain[i].output_bytes;
      for (uint32_t k = 0; k < chain[i].slots.size(); ++k)
        if (slots >> (kMaxSlots * i + k) & 1) sum += chain[i].slots[k].bytes;
    }
    return sum;
  };
  const auto push = [&](int time, const State &s, uint32_t during) {
    if (during > budget || load(s) > budget) return;
    const auto [at, fresh] = best.emplace(s, time);
    if (!fresh && at->second <= time) return;
    at->second = time;
    queue.push({time, s});
  };
  push(0, {1, 0, 0, n}, 0);
  while (!queue.empty()) {
    const auto [time, state] = queue.top();
    queue.pop();
    if (best[state] < time) continue;
    const auto &[boundaries, slots, run, left] = state;
    if (left == 0) return time;
    const uint32_t now = load(state);
    for (uint32_t i = 1; i <= n; ++i)
      if (boundaries >> i & 1) push(time, {boundaries & ~(1u << i), slots, run, left}, 0);
    for (uint32_t b = 0; b < kMaxSlots * n; ++b)
      if (slots >> b & 1) push(time, {boundaries, slots & ~(1u << b), run, left}, 0);
    for (uint32_t i = 0; i < n && i <= run && i < left; ++i) {
      if (!(boundaries >> i & 1)) continue;
      const uint32_t shift = kMaxSlots * i, live = slots >> shift & ((1u << kMaxSlots) - 1);
      for (uint32_t want = 0; want < 1u << chain[i].slots.size(); ++want)
        for (const bool output : {false, true}) {
          if (i == run && !output) continue;
          const bool make = output && !(boundaries >> (i + 1) & 1);
          const Call c = call(chain[i], live, want, make);
          push(time + static_cast<int>(c.cost), {boundaries | (output ? 2u << i : 0), slots | want << shift, run + (i == run), left}, now + c.bytes);
        }
    }
    if (run < n) continue;
    const uint32_t i = left - 1, shift = kMaxSlots * i;
    bool there = (!chain[i].reads_input || (boundaries >> i & 1)) && (!chain[i].reads_output || (boundaries >> left & 1));
    for (uint32_t k = 0; k < chain[i].slots.size(); ++k) there = there && (!chain[i].slots[k].needed || (slots >> (shift + k) & 1));
    if (!there) continue;
    const uint32_t gradient = i > 0 ? chain[i - 1].output_bytes : 0;
    push(time + static_cast<int>(chain[i].backward_cost), {boundaries & ~(1u << left), slots & ~(((1u << kMaxSlots) - 1) << shift), run, i}, now + gradient + chain[i].backward_scratch);
  }
  return -1;
}

uint32_t draw(uint32_t low, uint32_t high) { return *rc::gen::inRange(low, high + 1); }

SegmentModel some_segment() {
  SegmentModel s;
  s.slots.resize(draw(0, kMaxSlots));
  uint32_t read = 0;
  for (uint32_t k = 0; k < s.slots.size(); ++k) {
    s.slots[k] = {draw(1, 6), draw(0, 4), k == 0 ? 0u : draw(0, 1), draw(0, 3) != 0};
    read |= s.slots[k].reads;
  }
  s.output_reads = draw(0, (1u << s.slots.size()) - 1);
  for (uint32_t k = 0; k < s.slots.size(); ++k)
    if (!((read | s.output_reads) >> k & 1)) s.slots[k].needed = true;
  for (uint32_t k = 0; k + 1 < s.slots.size(); ++k)  // a transient slot that only such slots read
    if (!s.slots[k].needed && !(s.output_reads >> k & 1)) s.slots[k + 1].needed = true;
  s.output_bytes = draw(1, 6);
  s.output_cost = draw(0, 4);
  s.backward_cost = draw(0, 3);
  s.forward_scratch = draw(0, 1) * draw(0, 4);
  s.backward_scratch = draw(0, 1) * draw(0, 4);
  s.reads_input = draw(0, 2) != 0;
  s.reads_output = draw(0, 3) == 0;
  return s;
}

Segment graph_segment(const SegmentModel &s) {
  Segment g;
  g.slots.clear();
  g.output_reads.clear();
  for (uint32_t k = 0; k < s.slots.size(); ++k) {
    testing::Slot slot{std::string(1, static_cast<char>('a' + k)), s.slots[k].bytes, static_cast<double>(s.slots[k].cost), {}};
    if (s.slots[k].reads != 0) slot.reads.push_back(0);
    if (!s.slots[k].needed) slot.flags = CKPT_SLOT_TRANSIENT;
    g.slots.push_back(slot);
    if (s.output_reads >> k & 1) g.output_reads.push_back(k);
  }
  g.output_bytes = s.output_bytes;
  g.output_seconds = s.output_cost;
  g.backward_seconds = s.backward_cost;
  g.forward_scratch = s.forward_scratch;
  g.backward_scratch = s.backward_scratch;
  if (!s.reads_input) g.input_flags = CKPT_INPUT_BACKWARD_IGNORES;
  if (s.reads_output) g.output_flags = CKPT_OUTPUT_BACKWARD_READS;
  return g;
}

RC_GTEST_PROP(PlanOptimum, NoPlanBeatsBruteForce, ()) {
  std::vector<SegmentModel> chain(draw(1, 3));
  for (SegmentModel &s : chain) s = some_segment();
  ChainOf g(0, Segment{});
  for (const SegmentModel &s : chain) g.append(graph_segment(s));
  const GradientMap gradients = derive_gradients(g, default_roots(g));
  PlanRequest r;
  size_t minimum = 0;
  if (find_minimum_budget(g, gradients, r, arena::Placer(), &minimum)) RC_FAIL(last_error());
  r.strategy = CKPT_STRATEGY_STORE_ALL;
  Planned all;
  if (make_plan(g, gradients, r, arena::Placer(), &all)) RC_FAIL(last_error());
  r.strategy = CKPT_STRATEGY_AUTO;
  double auto_sum = 0, best_sum = 0;
  for (r.budget = minimum; r.budget <= all.prediction.height; ++r.budget) {
    Planned p;
    if (make_plan(g, gradients, r, arena::Placer(), &p)) RC_FAIL(last_error());
    const int best = brute_force(chain, static_cast<uint32_t>(r.budget));
    RC_ASSERT(best >= 0);
    RC_ASSERT(p.prediction.seconds() >= best - 1e-9);
    auto_sum += p.prediction.seconds();
    best_sum += best;
  }
  if (minimum > 0) RC_ASSERT(brute_force(chain, static_cast<uint32_t>(all.prediction.height)) <= all.prediction.seconds() + 1e-9);
  // Over 6000 such chains AUTO was optimal at every budget in 96 %, and took 1.0 % more time in all; the worst one 50 %.
  RC_ASSERT(auto_sum <= 2 * best_sum + 1e-9);
}

}  // namespace
}  // namespace ckpt::plan
