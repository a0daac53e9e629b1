// The fastest program of a class for every amount of live load, by a dynamic program over intervals of the chain that leaves
// nothing out: no bounds, no limits, all sets of slots. For small chains; the oracle for the exact planner, with which it
// shares nothing. Each point of the answer can be written as a program, for the verifier to confirm.
//
// A state (s, t, o, r): segments s..t are to be run and then to go backward; t is the last segment and nothing has run
// (o = first), or t has run and keeps `o`; boundary s is live and survives outside (r), or is inside and goes when nobody
// needs it. One split at j runs s..j, keeps option q of j, does j+1..t, and then s..j with q kept.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "chain_random.h"

namespace plan_test {

enum class DpClass : uint8_t {
  rotor,  // a segment that was run past is left with nothing but its boundaries
  sigma,  // it may keep any of its slots, and goes backward when its input has been made again
  calls,  // and a run, or the fill before a backward, may be several forwards and drops of the segment, so that less is there at once
};

class ChainDp {
 public:
  struct Point {
    int64_t bytes = 0, cost = 0;  // live load, and time beyond each segment once forward and backward
    // How: a leaf (no left) fills and goes backward; a split, see above.
    uint32_t at = 0, option = 0, way = 0;  // way: of runs() or fills()
    bool boundary_stays = true;   // a leaf's, or the split's at its own start: false: it goes before the fill
    const Point *right = nullptr, *left = nullptr;
  };
  using Frontier = std::vector<Point>;  // bytes rise, costs fall

  ChainDp(ChainModel chain, DpClass dp_class) : chain_(std::move(chain)), class_(dp_class) {
    for (uint32_t i = 0; i < chain_.size(); ++i) add_segment(chain_.segments[i], chain_.boundary_bytes(i + 1));
    states_.resize(size_t{n()} * n() * (kMaxOptions + 1) * 2);
    top_ = &solve(0, n() - 1, kFirst, false);
  }
  const Frontier &frontier() const { return *top_; }
  // The least cost within so many bytes of live load, or -1.
  int64_t least(int64_t bytes) const {
    int64_t cost = -1;
    for (const Point &p : *top_)
      if (p.bytes <= bytes) cost = p.cost;
    return cost;
  }
  Program program(const Point &point) const {
    Program p;
    write(0, n() - 1, kFirst, false, point, &p);
    return p;
  }

 private:
  static constexpr uint32_t kFirst = 0, kMaxOptions = 64;
  struct Option {
    uint32_t slots = 0;
    bool output = false;  // kept until the backward
  };
  struct Call {
    int64_t peak = 0, cost = 0;  // peak: of what this segment has, makes, and its scratch
    uint32_t slots = 0;
    bool output = false, any = false;
  };
  struct Part {
    std::vector<int64_t> bytes, cost;  // per set of slots
    std::vector<Option> options;
    uint32_t needed = 0, sticky = 0;
    int64_t output_bytes = 0, forward = 0;  // forward: everything once
  };
  struct Step {
    uint32_t slots = 0;   // asked for, or dropped
    bool output = false;  // asked for
    bool drop = false;
  };
  struct Way {  // one or several forwards of a segment
    int64_t peak = 0, cost = 0;
    std::vector<Step> calls;
    uint32_t slots = 0;                            // there at the end
  };
  using Ways = std::vector<Way>;

  uint32_t n() const { return chain_.size(); }
  const ModelSegment &segment(uint32_t i) const { return chain_.segments[i]; }
  int64_t boundary(uint32_t i) const { return chain_.boundary_bytes(i); }
  int64_t gradient(uint32_t i) const { return chain_.gradient_bytes(i); }

  void add_segment(const ModelSegment &s, uint32_t output_bytes) {
    Part p;
    const auto count = static_cast<uint32_t>(s.slots.size());
    for (uint32_t set = 0; set < 1u << count; ++set) {
      p.bytes.push_back(0);
      p.cost.push_back(0);
      for (uint32_t k = 0; k < count; ++k)
        if (set >> k & 1) p.bytes.back() += s.slots[k].bytes, p.cost.back() += s.slots[k].cost;
    }
    for (uint32_t k = 0; k < count; ++k) {
      if (!s.slots[k].transient) p.needed |= 1u << k;
      if (s.slots[k].keep) p.sticky |= 1u << k;
    }
    for (uint32_t set = 0; set < 1u << count; ++set)
      for (const bool output : {false, true})
        if (!(p.sticky & ~set) && (!output || s.reads_output)) p.options.push_back({set, output});
    EXPECT_LE(p.options.size(), kMaxOptions);
    p.output_bytes = output_bytes;
    p.forward = p.cost.back() + s.output_cost;
    parts_.push_back(std::move(p));
  }
  uint32_t made(uint32_t i, uint32_t want, uint32_t live) const {
    uint32_t all = 0;
    for (uint32_t k = static_cast<uint32_t>(segment(i).slots.size()); k-- > 0;)
      if (want >> k & ~live >> k & 1) all |= 1u << k, want |= segment(i).slots[k].reads;
    return all;
  }
  // Slots `has` and perhaps the output are there; `want`, and perhaps the output, shall be.
  Call call(uint32_t i, uint32_t has, bool has_output, uint32_t want, bool want_output) const {
    const Part &p = parts_[i];
    const bool make = want_output && !has_output;
    const uint32_t todo = made(i, want | (make ? segment(i).output_reads : 0), has);
    Call c;
    c.any = make || todo != 0;
    c.slots = has | want;
    c.output = has_output || make;
    c.peak = p.bytes[has | todo] + (c.output ? p.output_bytes : 0) + (c.any ? segment(i).forward_scratch : 0);
    if (c.any) c.cost = segment(i).whole ? p.forward : p.cost[todo] + (make ? segment(i).output_cost : 0);
    return c;
  }
  // A run with the output: the first one starts from nothing, others from what is never given up.
  Call jump(uint32_t i, bool first) const { return call(i, first ? 0 : parts_[i].sticky, false, parts_[i].sticky, true); }
  const Ways &runs(uint32_t i, bool first, uint32_t keep) {
    return known({i, first, keep, 2}, [&] { return ways(i, first ? 0 : parts_[i].sticky, false, keep, true, true, first); });
  }
  const Ways &fills(uint32_t i, const Option &o) {
    return known({i, 0, o.slots, o.output}, [&] { return ways(i, o.slots, o.output, parts_[i].needed, segment(i).reads_output, false, false); });
  }
  template <class Find>
  const Ways &known(const std::array<uint32_t, 4> &key, Find &&find) {
    const auto it = ways_.find(key);
    return it != ways_.end() ? it->second : ways_.emplace(key, find()).first->second;
  }
  // From these slots (and the output) to at least those; `only`: to no others. `first`: the first call is a first run, which
  // makes the output and what is made once.
  Ways ways(uint32_t i, uint32_t has, bool has_output, uint32_t want, bool want_output, bool only, bool first) const {
    if (class_ != DpClass::calls) {
      Way w;
      const Call c = call(i, has, has_output, want, want_output);
      w.slots = c.slots;
      if (c.any || first) w.peak = c.peak, w.cost = c.cost, w.calls = {{want & ~has, want_output && !has_output, false}};
      return {w};
    }
    Ways found;
    std::map<std::array<uint32_t, 3>, std::vector<std::pair<int64_t, int64_t>>> seen;  // per slots, output, begun: peaks and costs
    Way begin;
    begin.slots = has;
    extend(i, begin, has_output, want, want_output, only, first, &seen, &found);
    std::stable_sort(found.begin(), found.end(), [](const Way &a, const Way &b) { return std::tie(a.peak, a.cost) < std::tie(b.peak, b.cost); });
    Ways best;
    for (Way &w : found)
      if (std::none_of(best.begin(), best.end(), [&](const Way &b) { return b.cost <= w.cost && (b.slots & ~w.slots) == 0; })) best.push_back(std::move(w));
    return best;
  }
  void extend(uint32_t i, const Way &way, bool output, uint32_t want, bool want_output, bool only, bool first,
              std::map<std::array<uint32_t, 3>, std::vector<std::pair<int64_t, int64_t>>> *seen, Ways *found) const {
    std::vector<std::pair<int64_t, int64_t>> &before = (*seen)[{way.slots, output, !way.calls.empty()}];
    for (const auto &[peak, cost] : before)
      if (peak <= way.peak && cost <= way.cost) return;
    before.push_back({way.peak, way.cost});
    const bool begun = !first || !way.calls.empty();
    if (begun && !(want & ~way.slots) && (!only || way.slots == want) && (output || !want_output)) found->push_back(way);
    const auto go_on = [&](const Step &step, int64_t peak, int64_t cost) {
      Way longer = way;
      longer.peak = std::max(way.peak, peak);
      longer.cost += cost;
      longer.slots ^= step.slots;
      longer.calls.push_back(step);
      extend(i, longer, output || step.output, want, want_output, only, first, seen, found);
    };
    const uint32_t all = (1u << segment(i).slots.size()) - 1;
    for (uint32_t next = 0; next <= all; ++next)
      for (const bool make : {false, true}) {
        if ((next & way.slots) || (make && (output || !want_output)) || (next == 0 && !make)) continue;
        if (!begun && (!make || (parts_[i].sticky & ~next))) continue;
        const Call c = call(i, way.slots, output, next, output || make);
        go_on({next, make, false}, c.peak, c.cost);
      }
    for (uint32_t k = 0; begun && (all >> k) != 0; ++k)
      if (way.slots >> k & ~parts_[i].sticky >> k & 1) go_on({1u << k, false, true}, 0, 0);
  }

  int64_t stored(uint32_t i, uint32_t option) const {
    if (option == kFirst) return 0;
    const Option &o = parts_[i].options[option - 1];
    return parts_[i].bytes[o.slots] + (o.output ? parts_[i].output_bytes : 0);
  }
  int64_t sticky(uint32_t begin, uint32_t end) const {
    int64_t sum = 0;
    for (uint32_t i = begin; i < end; ++i) sum += parts_[i].bytes[parts_[i].sticky];
    return sum;
  }

  // Fill and backward of s. `gone`: boundary s went right after the run that kept the option.
  Frontier leaf(uint32_t s, uint32_t option, bool survives, bool gone) {
    const Option &o = parts_[s].options[option - 1];
    const int64_t x = survives || gone ? 0 : boundary(s);
    const Ways &ways = fills(s, o);
    Frontier all;
    for (uint32_t w = 0; w < ways.size(); ++w) {
      const bool any = !ways[w].calls.empty();
      if (gone && (any || segment(s).reads_input || survives)) continue;
      const int64_t held = parts_[s].bytes[ways[w].slots] + (o.output || segment(s).reads_output ? parts_[s].output_bytes : 0);
      const int64_t back = gradient(s + 1) + held + gradient(s) + segment(s).backward_scratch + (segment(s).reads_input ? x : 0);
      all.push_back({any ? std::max(gradient(s + 1) + x + ways[w].peak, back) : back, ways[w].cost, s, option, w, !gone, nullptr, nullptr});
    }
    return best(std::move(all));
  }

  const Frontier &solve(uint32_t s, uint32_t t, uint32_t option, bool survives) {
    std::unique_ptr<Frontier> &p = states_[((size_t{s} * n() + t) * (kMaxOptions + 1) + option) * 2 + survives];
    if (p == nullptr) p = std::make_unique<Frontier>(compute(s, t, option, survives));
    return *p;
  }

  // Every way to take one point of each; `base`: the rest of the split.
  static void combine(const Point &base, int64_t right_more, const Frontier *right, const Frontier &left, Frontier *out) {
    static const Frontier kNothing(1);
    const Frontier &r = right == nullptr ? kNothing : *right;
    size_t i = 0, j = 0;
    while (i < r.size() && j < left.size()) {
      Point p = base;
      const int64_t need_right = right_more + r[i].bytes, need_left = left[j].bytes;
      p.bytes = std::max({base.bytes, need_right, need_left});
      p.cost += r[i].cost + left[j].cost;
      p.right = right == nullptr ? nullptr : &r[i];
      p.left = &left[j];
      out->push_back(p);
      // What forces the bytes up from here: the side whose next point comes first.
      const int64_t next_right = i + 1 < r.size() ? right_more + r[i + 1].bytes : INT64_MAX, next_left = j + 1 < left.size() ? left[j + 1].bytes : INT64_MAX;
      if (next_right == INT64_MAX && next_left == INT64_MAX) break;
      if (next_right <= next_left) ++i;
      else ++j;
    }
  }
  static Frontier best(Frontier all) {
    std::stable_sort(all.begin(), all.end(), [](const Point &a, const Point &b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.cost < b.cost; });
    Frontier kept;
    for (const Point &p : all)
      if (kept.empty() || p.cost < kept.back().cost) kept.push_back(p);
    return kept;
  }

  Frontier compute(uint32_t s, uint32_t t, uint32_t option, bool survives) {
    const bool first = option == kFirst;
    const int64_t x = survives ? 0 : boundary(s);
    const int64_t base = gradient(t + 1) + stored(t, option) + x + (first ? 0 : sticky(s + 1, t));
    Frontier all;
    if (s == t && !first) {
      all = leaf(s, option, survives, false);
      for (Point &p : all) p.cost -= parts_[s].forward;
      return all;
    }
    split_here(s, t, option, survives, base, &all);
    // Runs past s..j-1: only one boundary of them stays until the next one is there.
    int64_t peak = 0, spent = 0;
    for (uint32_t j = s + 1; j <= t && (j < t || first); ++j) {
      const uint32_t i = j - 1;
      const Call c = jump(i, first);
      int64_t held = base;
      if (i > s) held += boundary(i) + (first ? sticky(s, i) : sticky(s, s + 1) - sticky(i, i + 1));
      peak = std::max(peak, held + c.peak);
      spent += c.cost;
      split_later(s, j, t, option, survives, peak, spent, &all);
    }
    return best(std::move(all));
  }
  // At j = s: boundary s may go right after the run.
  void split_here(uint32_t s, uint32_t t, uint32_t option, bool survives, int64_t base, Frontier *all) {
    const bool first = option == kFirst, last = s == n() - 1;
    const int64_t x = survives ? 0 : boundary(s);
    for (uint32_t q = 0; q < parts_[s].options.size(); ++q) {
      const Option &o = parts_[s].options[q];
      for (const bool stays : {true, false}) {
        leaves_.push_back(std::make_unique<Frontier>(leaf(s, q + 1, survives, !stays)));
        const Frontier &left = *leaves_.back();
        const Ways &ways = runs(s, first, o.slots);
        for (uint32_t w = 0; w < ways.size() && !left.empty(); ++w) {
          const Point p{base + ways[w].peak, ways[w].cost - parts_[s].forward, s, q + 1, w, stays, nullptr, nullptr};
          combine(p, (stays ? x : 0) + stored(s, q + 1), last ? nullptr : &solve(s + 1, t, option, o.output), left, all);
        }
      }
    }
  }
  void split_later(uint32_t s, uint32_t j, uint32_t t, uint32_t option, bool survives, int64_t peak, int64_t spent, Frontier *all) {
    const bool first = option == kFirst, last = j == n() - 1;
    const int64_t x = survives ? 0 : boundary(s);
    const int64_t now = gradient(t + 1) + stored(t, option) + x + boundary(j) + (first ? sticky(s, j) : sticky(s, t) - sticky(j, j + 1));
    for (uint32_t q = 0; q < parts_[j].options.size(); ++q) {
      const Option &o = parts_[j].options[q];
      if (class_ == DpClass::rotor && o.slots != parts_[j].sticky) continue;
      const Ways &ways = runs(j, first, o.slots);
      for (uint32_t w = 0; w < ways.size(); ++w) {
        const Point p{std::max(peak, now + ways[w].peak), spent + ways[w].cost, j, q + 1, w, true, nullptr, nullptr};
        combine(p, x + sticky(s, j) + stored(j, q + 1), last ? nullptr : &solve(j + 1, t, option, o.output), solve(s, j, q + 1, survives), all);
      }
    }
  }

  void free(uint32_t i, Program *p) const {
    if ((i == 0 && chain_.input_caller) || (i == n() && chain_.output_caller)) return;
    p->actions.push_back({ActionKind::free, i, {}, {}});
  }
  void forward(uint32_t i, uint32_t slots, bool output, Program *p) const {
    Bits want;
    want.set_word(0, slots);
    if (output) want.set(static_cast<uint32_t>(segment(i).slots.size()));
    p->actions.push_back({ActionKind::forward, i, want, {}});
  }
  void write_steps(uint32_t i, const Way &way, Program *p) const {
    for (const Step &step : way.calls) {
      forward(i, step.slots, step.output, p);
      if (step.drop) p->actions.back().kind = ActionKind::drop;
    }
  }
  void write_leaf(const Point &point, bool survives, Program *p) const {
    const uint32_t s = point.at;
    const Option &o = parts_[s].options[point.option - 1];
    write_steps(s, ways_.at({s, 0, o.slots, o.output})[point.way], p);
    const bool stays = point.boundary_stays && !survives, before = stays && !segment(s).reads_input;
    if (before) free(s, p);
    p->actions.push_back({ActionKind::backward, s, {}, {}});
    if (stays && !before) free(s, p);
  }
  void write(uint32_t s, uint32_t t, uint32_t option, bool survives, const Point &point, Program *p) const {
    if (point.left == nullptr) return write_leaf(point, survives, p);
    const Option &o = parts_[point.at].options[point.option - 1];
    const bool first = option == kFirst;
    const uint32_t j = point.at;
    for (uint32_t i = s; i < j; ++i) {
      forward(i, first ? parts_[i].sticky : 0, true, p);
      if (i > s) free(i, p);
    }
    write_steps(j, ways_.at({j, first, o.slots, 2})[point.way], p);
    if (j > s || (!point.boundary_stays && !survives)) free(j, p);
    if (j == n() - 1 && !o.output) free(n(), p);
    if (point.right != nullptr) write(j + 1, t, option, o.output, *point.right, p);
    write(s, j, point.option, survives, *point.left, p);
  }

  ChainModel chain_;
  DpClass class_;
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<Frontier>> states_, leaves_;
  std::map<std::array<uint32_t, 4>, Ways> ways_;
  const Frontier *top_ = nullptr;
};

}  // namespace plan_test
