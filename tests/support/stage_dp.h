// The chain as papers have it, in stages: a forward of stage i costs u_i and leaves its output a_{i+1}, or all that it saves
// together with its output, A_i; its backward reads A_i and a_i (which A_{i-1} holds too). Dynamic programs that leave nothing
// out, for four classes; a search over all schedules; instances with known answers; closed forms.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "chain_random.h"

namespace plan_test {

struct StageChain {
  std::vector<int64_t> a;         // n + 1 boundaries; a[0] is the caller's
  std::vector<int64_t> saved;     // A: what is saved and the output, together
  std::vector<int64_t> backward;  // beyond what is live: scratch and the input's gradient
  std::vector<int64_t> cost;
  std::vector<int64_t> gradient;  // n + 1; the last one is there from the start

  uint32_t size() const { return static_cast<uint32_t>(cost.size()); }
};

enum class StageClass : uint8_t { rotor, sigma, sigma_d, sigma_d_e };

// Costs are forward work beyond one forward of each stage; bytes leave the boundary at the start of an interval out.
class StageDp {
 public:
  struct Point {
    int64_t bytes, cost;
  };
  using Frontier = std::vector<Point>;

  StageDp(const StageChain &chain, StageClass stage_class) : c_(chain), class_(stage_class) {
    for (uint32_t i = 0; i < n(); ++i) total_.push_back(total_.back() + c_.cost[i]);
  }
  std::optional<int64_t> least(int64_t bytes) {
    std::optional<int64_t> cost;
    for (const Point &p : whole(0, n() - 1, false))
      if (p.bytes <= bytes) cost = p.cost;
    return cost;
  }

 private:
  enum Move : uint32_t { kWhole, kLate, kPass };
  uint32_t n() const { return c_.size(); }
  int64_t inside(uint32_t i) const { return i == 0 ? 0 : c_.a[i]; }  // boundary i where it counts
  // What lies there while s..t is done: t's savings (if they are there already), and the gradient that arrives.
  int64_t base(uint32_t t, bool stored) const { return c_.gradient[t + 1] + (stored ? c_.saved[t] : 0); }

  using Compute = Frontier (StageDp::*)(uint32_t, uint32_t, bool);
  const Frontier &known(Move move, uint32_t s, uint32_t t, bool stored, Compute compute) {
    const std::array<uint32_t, 4> key{move, s, t, stored};
    if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
    Frontier all = (this->*compute)(s, t, stored), kept;
    std::sort(all.begin(), all.end(), [](const Point &x, const Point &y) { return x.bytes != y.bytes ? x.bytes < y.bytes : x.cost < y.cost; });
    for (const Point &p : all)
      if (kept.empty() || p.cost < kept.back().cost) kept.push_back(p);
    return memo_[key] = std::move(kept);
  }
  // s..t forward and backward; `stored`: t is saved (and counted here), only the rest is to be run.
  const Frontier &whole(uint32_t s, uint32_t t, bool stored) { return known(kWhole, s, t, stored, &StageDp::find_whole); }
  // Boundary j is there, and counted: t..j+1 go backward, j is saved on the way, and boundary j goes (D).
  const Frontier &late(uint32_t j, uint32_t t, bool stored) { return known(kLate, j, t, stored, &StageDp::find_late); }
  // Likewise, but nothing of j is saved (E).
  const Frontier &pass(uint32_t j, uint32_t t, bool stored) { return known(kPass, j, t, stored, &StageDp::find_pass); }

  static void merge(int64_t least, int64_t right_more, const Frontier &right, const Frontier &left, int64_t cost, Frontier *out) {
    for (const Point &x : right)
      for (const Point &y : left) out->push_back({std::max({least, x.bytes + right_more, y.bytes}), cost + x.cost + y.cost});
  }

  Frontier find_whole(uint32_t s, uint32_t t, bool stored) {
    Frontier all;
    const int64_t back = c_.gradient[s + 1] + c_.saved[s] + c_.backward[s];
    if (s == t) {
      all.push_back({stored ? back : std::max(base(t, false) + c_.saved[s], back), 0});
      return all;
    }
    for (const Point &p : whole(s + 1, t, stored)) all.push_back({std::max({base(t, stored) + c_.saved[s], back, p.bytes + c_.saved[s]}), p.cost});
    int64_t run = 0;
    for (uint32_t j = s + 1; j <= t; ++j) {
      run = std::max(run, (j - 1 > s ? c_.a[j - 1] : 0) + c_.a[j]);
      const int64_t least = base(t, stored) + run, cost = total_[j] - total_[s];
      merge(least, c_.a[j], whole(j, t, stored), whole(s, j - 1, false), cost, &all);
      if (j == t || class_ == StageClass::rotor) continue;
      if (class_ == StageClass::sigma) {
        merge(std::max(least, base(t, stored) + c_.a[j] + c_.saved[j]), c_.saved[j], whole(j + 1, t, stored), whole(s, j, true), cost, &all);
        continue;
      }
      merge(least, 0, late(j, t, stored), whole(s, j, true), cost, &all);
      if (class_ == StageClass::sigma_d_e) merge(least, 0, pass(j, t, stored), whole(s, j, false), cost, &all);
    }
    return all;
  }
  Frontier find_late(uint32_t j, uint32_t t, bool stored) {
    Frontier all;
    const int64_t here = inside(j);
    for (const Point &p : whole(j + 1, t, stored)) all.push_back({std::max(base(t, stored) + here + c_.saved[j], p.bytes + c_.saved[j]), p.cost});
    int64_t run = 0;
    for (uint32_t x = j + 1; x <= t; ++x) {
      run = std::max(run, (x - 1 > j ? c_.a[x - 1] : 0) + c_.a[x]);
      const int64_t least = base(t, stored) + here + run, cost = total_[x] - total_[j];
      if (x - 1 > j) merge(least, here + c_.a[x], whole(x, t, stored), late(j, x - 1, false), cost, &all);
      else
        for (const Point &p : whole(x, t, stored)) all.push_back({std::max({least, p.bytes + here + c_.a[x], c_.gradient[x] + here + c_.saved[j]}), cost + p.cost});
      if (x == t) continue;
      merge(least, here, late(x, t, stored), late(j, x, true), cost, &all);
      if (class_ == StageClass::sigma_d_e) merge(least, here, pass(x, t, stored), late(j, x, false), cost, &all);
    }
    return all;
  }
  Frontier find_pass(uint32_t j, uint32_t t, bool stored) {
    Frontier all;
    const int64_t here = inside(j);
    for (const Point &p : whole(j + 1, t, stored)) all.push_back({std::max(base(t, stored) + here + c_.a[j + 1], p.bytes + c_.a[j + 1]), c_.cost[j] + p.cost});
    int64_t run = 0;
    for (uint32_t x = j + 1; x <= t; ++x) {
      run = std::max(run, (x - 1 > j ? c_.a[x - 1] : 0) + c_.a[x]);
      const int64_t least = base(t, stored) + here + run, cost = total_[x] - total_[j];
      if (x - 1 > j) merge(least, here + c_.a[x], whole(x, t, stored), pass(j, x - 1, false), cost, &all);
      if (x == t) continue;
      merge(least, here, late(x, t, stored), pass(j, x, true), cost, &all);
      merge(least, here, pass(x, t, stored), pass(j, x, false), cost, &all);
    }
    return all;
  }

  StageChain c_;
  StageClass class_;
  std::vector<int64_t> total_{0};
  std::map<std::array<uint32_t, 4>, Frontier> memo_;
};

// Any schedule: shortest path over all sets of live boundaries and savings.
inline std::optional<int64_t> stage_brute_force(const StageChain &c, int64_t bytes) {
  const uint32_t n = c.size();
  const auto state = [&](uint32_t left, uint32_t saved, uint32_t boundaries) { return (left << n | saved) << n | boundaries; };  // boundary i: bit i
  std::vector<int64_t> best(size_t{n + 1} << (2 * n), INT64_MAX);
  std::priority_queue<std::pair<int64_t, uint32_t>, std::vector<std::pair<int64_t, uint32_t>>, std::greater<>> queue;
  const auto load = [&](uint32_t left, uint32_t saved, uint32_t boundaries) {
    int64_t sum = c.gradient[left];
    for (uint32_t i = 0; i < n; ++i) sum += (i > 0 && (boundaries >> i & 1) ? c.a[i] : 0) + (saved >> i & 1 ? c.saved[i] : 0);
    return sum;
  };
  const auto reach = [&](int64_t cost, uint32_t left, uint32_t saved, uint32_t boundaries, int64_t during) {
    const uint32_t to = state(left, saved, boundaries);
    if (during > bytes || load(left, saved, boundaries) > bytes || cost >= best[to]) return;
    best[to] = cost;
    queue.push({cost, to});
  };
  int64_t once = 0;
  for (int64_t u : c.cost) once += u;
  reach(0, n, 0, 1, 0);
  while (!queue.empty()) {
    const auto [cost, at] = queue.top();
    queue.pop();
    if (cost > best[at]) continue;
    const uint32_t left = at >> (2 * n), saved = at >> n & ((1u << n) - 1), boundaries = at & ((1u << n) - 1);
    if (left == 0) return cost - once;
    const int64_t now = load(left, saved, boundaries);
    const auto there = [&](uint32_t i) { return (boundaries >> i & 1) || (i > 0 && (saved >> (i - 1) & 1)); };
    for (uint32_t i = 0; i < n; ++i) {
      if (i > 0 && (boundaries >> i & 1)) reach(cost, left, saved, boundaries & ~(1u << i), now);
      if (saved >> i & 1) reach(cost, left, saved & ~(1u << i), boundaries, now);
      if (!there(i)) continue;
      if (i + 1 < n && !(boundaries >> (i + 1) & 1)) reach(cost + c.cost[i], left, saved, boundaries | 2u << i, now + c.a[i + 1]);
      if (!(saved >> i & 1)) reach(cost + c.cost[i], left, saved | 1u << i, boundaries, now + c.saved[i]);
    }
    const uint32_t i = left - 1;
    if ((saved >> i & 1) && there(i)) reach(cost, i, saved & ~(1u << i), boundaries, now + c.backward[i]);
  }
  return std::nullopt;
}

// Instances on which the classes differ; -1: no schedule fits.
struct StageKnown {
  int64_t bytes;
  StageChain chain;
  std::array<int64_t, 4> least;  // by StageClass
  int64_t any_schedule;
};
inline const std::vector<StageKnown> &stage_known() {
  const auto chain = [](std::vector<int64_t> a, std::vector<int64_t> saved, std::vector<int64_t> backward, std::vector<int64_t> cost) {
    StageChain c{a, std::move(saved), std::move(backward), std::move(cost), a};
    return c;
  };
  static const std::vector<StageKnown> all = {
      {71, chain({15, 14, 16, 17, 10}, {16, 16, 18, 12}, {15, 14, 16, 17}, {2, 5, 2, 5}), {16, 9, 7, 7}, 7},
      {37, chain({18, 7, 10, 7, 6}, {7, 11, 9, 7}, {18, 7, 10, 7}, {3, 2, 4, 3}), {9, 8, 5, 5}, 5},
      {46, chain({3, 3, 19, 4, 9}, {5, 19, 4, 11}, {3, 3, 19, 4}, {1, 4, 1, 3}), {11, 6, 5, 5}, 5},
      {62, chain({4, 11, 4, 13, 16, 12}, {11, 6, 14, 17, 13}, {4, 11, 4, 13, 16}, {1, 1, 5, 4, 4}), {18, 9, 7, 7}, 7},
      {85, chain({11, 19, 12, 19, 8, 19}, {19, 13, 21, 8, 19}, {11, 19, 12, 19, 8}, {4, 2, 2, 3, 5}), {8, 6, 4, 4}, 4},
      {51, chain({18, 14, 6, 16, 8, 14}, {14, 8, 17, 10, 15}, {18, 14, 6, 16, 8}, {5, 3, 5, 5, 4}), {39, 31, 31, 28}, 28},
      {57, chain({11, 4, 12, 7, 11, 7, 15, 9}, {6, 12, 8, 11, 7, 17, 10}, {11, 4, 12, 7, 11, 7, 15}, {1, 3, 5, 1, 4, 3, 2}), {21, 13, 13, 13}, 13},
      {47, chain({3, 3, 9, 1, 7, 18}, {4, 10, 1, 9, 19}, {3, 3, 9, 1, 7}, {1, 4, 3, 2, 2}), {-1, -1, -1, -1}, -1},
  };
  return all;
}

// A stage chain on the machine: segments that run as a whole, whose output can be made without the savings. The machine can
// do more with it (the output may go and be made again while the savings stay), so its optimum may be lower, never higher.
inline ChainModel machine_of(const StageChain &c) {
  ChainModel m;
  const auto u32 = [](int64_t v) { return static_cast<uint32_t>(v); };
  m.input_bytes = u32(c.a[0]);
  m.input_grad_bytes = u32(c.gradient[0]);
  m.input_grad = CKPT_GRAD_ARENA;
  m.output_grad_in_arena = true;
  for (uint32_t i = 0; i < c.size(); ++i) {
    ModelSegment s;
    s.slots = {{u32(c.saved[i] - c.a[i + 1]), 0, 0, false, false}};
    s.output_bytes = u32(c.a[i + 1]);
    s.output_grad_bytes = u32(c.gradient[i + 1]);
    s.output_cost = u32(c.cost[i]);
    s.backward_scratch = u32(c.backward[i] - c.gradient[i]);
    s.reads_output = true;
    s.whole = true;
    m.segments.push_back(s);
  }
  return m;
}

inline int64_t binomial(int64_t n, int64_t k) {
  if (k < 0 || k > n) return 0;
  int64_t b = 1;
  for (int64_t i = 1; i <= k; ++i) b = b * (n - k + i) / i;
  return b;
}
// Extra forwards of the best schedule for n equal steps with s checkpoints, the input one of them (Griewank and Walther 2000).
inline int64_t revolve_extra(int64_t n, int64_t s) {
  int64_t r = 0;
  while (binomial(s + r, s) < n) ++r;
  return r * n - binomial(s + r, r - 1);
}
// Forwards in all where a checkpoint is either a step's input or all that it saves, of one size (Maddison).
class Mixed {
 public:
  int64_t forwards(int64_t n, int64_t s) {
    if (n <= s + 1) return n;
    if (s == 1) return n * (n + 1) / 2 - 1;
    int64_t &p = memo_[{n, s}];
    if (p != 0) return p;
    int64_t best = 1 + forwards(n - 1, s - 1);
    for (int64_t i = 2; i < n; ++i) best = std::min(best, i + forwards(i, s) + forwards(n - i, s - 1));
    return memo_[{n, s}] = best;
  }

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> memo_;
};
// n equal steps: boundaries of one byte, savings of `saved`; no gradients.
inline StageChain equal_steps(uint32_t n, int64_t saved) {
  return {std::vector<int64_t>(n + 1, 1), std::vector<int64_t>(n, saved), std::vector<int64_t>(n, 0), std::vector<int64_t>(n, 1), std::vector<int64_t>(n + 1, 0)};
}

}  // namespace plan_test
