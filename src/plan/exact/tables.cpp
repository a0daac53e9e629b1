#include "plan/exact/tables.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ckpt::plan::exact {
namespace {

// Chains of many different segments with many slots each: looking at several forwards of them would take longer than a plan.
constexpr uint64_t kMostStates = 16'384, kFewStates = 64;
constexpr double kEqual = 1e-9;  // relative: sums of seconds in another order

// One way to go backward from an option.
struct Leaf {
  Bytes m = 0, inside = 0;
  double seconds = 0;  // beyond those of the quickest one
  Calls calls;
};

// One way to run a segment.
struct Ran {
  Bytes bytes = 0;
  double seconds = -1;  // < 0: cannot
  Calls calls;
};

// One option of one segment before the weak ones go.
struct Draft {
  Choice choice;
  Bytes bytes = 0;
  bool gone = false, stays = false, at_once = false;
  double fill_seconds = 0;
  std::vector<Leaf> leaves;  // bytes descend, seconds ascend
  Ran first;
  std::vector<Ran> again;    // per start
};

class SegmentMaker {
 public:
  SegmentMaker(const Chain &chain, uint32_t i, const Bits &sticky, const TableOptions &options, double tick, bool exact)
      : chain_(chain), graph_(*chain.graph), link_(chain.links[i]), shape_(*graph_.nodes[i].shape), i_(i), sticky_(sticky), options_(options),
        tick_(tick), exact_(exact), needed_(link_.runs ? shape_.needed() : Bits{}) {}

  double make(Segment *out, std::vector<Choice> *choices, std::vector<Choice> *starts) {
    // Slots marked RECOMPUTE are in no choice, but for the last segment's, whose backward may follow on its first run.
    Bits barred = i_ + 1 == chain_.size() ? Bits{} : shape_.again();
    if (!link_.rerun) barred |= shape_.slots() - sticky_;
    sets_ = slot_sets(graph_, i_, sticky_, barred);
    starts_ = {sticky_};
    if (options_.starts && link_.rerun && !link_.wall && !shape_.whole()) find_starts();
    if (options_.calls && CallGraph::can(chain_, i_)) find_calls();
    for (const Bits &set : sets_) {
      if (!link_.wall) add_draft(set, false);
      if (link_.wall || link_.reads_output) add_draft(set, true);
    }
    keep_best();
    finish(out, choices, starts);
    return base_first_;
  }

 private:
  Bytes bytes_of(const Bits &slots) const {
    Bytes sum = 0;
    slots.each([&](uint32_t k) { sum += static_cast<Bytes>(graph_.item_footprint(i_, k)); });
    return sum;
  }
  Bytes scratch(size_t bytes) const { return bytes == 0 ? 0 : static_cast<Bytes>(graph_.rule.footprint(bytes)); }
  // A forward: all bytes of this segment that are then there, and its seconds.
  Bytes call(const Bits &live, bool has_output, const Bits &want, double *seconds) const {
    const Closure c = shape_.closure(want, live | (has_output ? link_.outputs : Bits{}));
    *seconds = graph_.seconds(i_, c);
    const bool output = has_output || !(c.todo & link_.outputs).empty();
    return bytes_of((live | c.todo) & shape_.slots()) + (output ? chain_.x[i_ + 1] : 0) + (c.todo.empty() ? 0 : scratch(shape_.forward_scratch()));
  }
  Bytes first_run(const Bits &keep, double *seconds) const { return call(Bits{}, false, keep | link_.first_outputs, seconds); }
  // From a start; the bytes beyond what it has.
  Bytes again_run(const Bits &start, const Bits &keep, double *seconds) const {
    return call(start | link_.given, false, keep | link_.outputs, seconds) - bytes_of(start);
  }

  // Slots that make the output cheaper to make again: the best per byte, and those that save the most.
  void find_starts() {
    double none = 0;
    again_run(sticky_, sticky_, &none);
    double best_rate = 0, most = 0;
    Bits rate, saver;
    Bytes saver_bytes = 0;
    for (const Bits &set : sets_) {
      if (set == sticky_ || !(set & shape_.again()).empty() || (link_.holds_input && set.has(0))) continue;
      double seconds = 0;
      again_run(set, set, &seconds);
      const double saved = none - seconds;
      if (saved < tick_) continue;
      const Bytes bytes = bytes_of(set - sticky_);
      const double per_byte = saved / (static_cast<double>(bytes) + 1);
      if (per_byte > best_rate) best_rate = per_byte, rate = set;
      if (saved > most * (1 + 1e-9) || (saved > most * (1 - 1e-9) && bytes < saver_bytes)) most = saved, saver = set, saver_bytes = bytes;
    }
    if (best_rate > 0) starts_.push_back(rate);
    if (most > 0 && !(saver == rate)) starts_.push_back(saver);
  }

  void find_calls() {
    const CallGraph graph(chain_, i_, tick_);
    several_ = true;
    first_ways_ = graph.runs(true, Bits{});
    for (const Bits &start : starts_) again_ways_.push_back(link_.wall ? Ways(size_t{1} << shape_.slot_count()) : graph.runs(false, start));
    for (const bool k : {false, true}) fill_ways_[k] = graph.fills(k, fill_of(k));
  }
  Bits fill_of(bool k) const { return needed_ | (link_.reads_output && !k ? link_.outputs : Bits{}); }

  // The single forward and those in several: the quickest first, each of fewer bytes than the one before.
  static std::vector<Ran> all_runs(const Ran &single, Bytes live, const std::vector<Way> *ways) {
    std::vector<Ran> runs{single};
    if (ways == nullptr || single.seconds < 0) return runs;
    for (const Way &w : *ways) {
      if (w.peak - live >= runs.back().bytes) continue;
      if (runs.size() == 1 && w.seconds <= single.seconds * (1 + kEqual)) runs.clear();
      runs.push_back({w.peak - live, w.seconds, w.calls});
    }
    return runs;
  }

  Ran first_run_of(const Bits &set) const {
    Ran r;
    r.bytes = first_run(set, &r.seconds);
    return r;
  }
  Ran again_run_of(const Draft &d, const Bits &start) const {
    Ran r;
    const Bits &set = d.choice.slots;
    if (!set.contains(start) || !link_.rerun || link_.wall || d.at_once) return r;
    if (!(shape_.closure(set | link_.outputs, start | link_.given).todo & shape_.keep()).empty()) return r;
    r.bytes = again_run(start, set, &r.seconds);
    return r;
  }

  // Fill and backward: false where it cannot be.
  bool add_leaves(Draft *d) const {
    const Bits &set = d->choice.slots;
    const bool k = d->choice.k;
    const Bits want = fill_of(k), live = set | link_.given | (k ? link_.outputs : Bits{});
    const Bytes before = chain_.g[i_ + 1];
    const Bytes rest = before + chain_.g_new[i_] + (link_.runs ? scratch(shape_.backward_scratch()) : 0) + (k || link_.reads_output ? chain_.x[i_ + 1] : 0);
    const auto leaf = [&](Bytes peak, bool forwards, const Bits &held, double seconds) {
      const Bytes back = rest + bytes_of(held), x = chain_.x[i_];
      Leaf l;
      l.m = std::max(forwards ? before + peak : 0, back);
      l.inside = std::max(forwards ? before + peak + x : 0, back + (link_.reads_input || d->stays ? x : 0));
      l.seconds = seconds;
      return l;
    };
    const Closure c = shape_.closure(want, live);
    d->choice.fills = !c.todo.empty();
    if (d->choice.fills) {
      d->choice.fill = want;
      if (!link_.rerun || !(c.todo & shape_.keep()).empty()) return false;
    }
    double seconds = 0;
    const Bytes peak = d->choice.fills ? call(set | link_.given, k, want, &seconds) : 0;
    d->leaves.push_back(leaf(peak, d->choice.fills, set | needed_, seconds));
    if (several_) {
      for (const Way &w : fill_ways_[k][CallGraph::index(set)]) {
        Leaf l = leaf(w.peak, std::any_of(w.calls.begin(), w.calls.end(), [](const Call &one) { return !one.drop; }), needed_ | (shape_.keep() & shape_.slots()), w.seconds);
        l.calls = w.calls;
        if (l.m >= d->leaves.back().m && l.inside >= d->leaves.back().inside) continue;
        if (d->leaves.size() == 1 && w.seconds <= d->leaves[0].seconds * (1 + kEqual)) d->leaves.clear();
        d->leaves.push_back(std::move(l));
      }
    }
    d->fill_seconds = d->leaves[0].seconds;
    for (Leaf &l : d->leaves) l.seconds -= d->fill_seconds;
    return true;
  }

  void add_draft(const Bits &set, bool k) {
    Draft d;
    d.choice.slots = set;
    d.choice.k = k;
    d.bytes = bytes_of(set) + (k ? chain_.x[i_ + 1] : 0);
    d.at_once = !(set & shape_.again()).empty();
    d.stays = link_.holds_input && set.has(0);
    if (!add_leaves(&d)) return;
    d.gone = !d.choice.fills && !link_.reads_input && !d.stays;
    // Each way to run is an option of its own: the quickest ones, then those of fewer bytes.
    const uint32_t at = CallGraph::index(set);
    const std::vector<Ran> first = all_runs(first_run_of(set), 0, several_ ? &first_ways_[at] : nullptr);
    std::vector<std::vector<Ran>> again;
    size_t most = first.size();
    for (size_t v = 0; v < starts_.size(); ++v) {
      again.push_back(all_runs(again_run_of(d, starts_[v]), bytes_of(starts_[v]), several_ ? &again_ways_[v][at] : nullptr));
      most = std::max(most, again.back().size());
    }
    for (size_t w = 0; w < most; ++w) {
      Draft one = d;
      one.first = first[std::min(w, first.size() - 1)];
      for (const std::vector<Ran> &runs : again) one.again.push_back(runs[std::min(w, runs.size() - 1)]);
      drafts_.push_back(std::move(one));
    }
  }

  Ticks ticks(double seconds) const {
    if (exact_) return std::max<Ticks>(0, std::llround(seconds / tick_));
    return std::max<Ticks>(0, static_cast<Ticks>(std::floor(seconds / tick_ + 1e-6)));
  }
  // Do the ways to go backward from `a`, which take so much more for the run, never take more than those from `b`?
  bool leaves_cover(const Draft &a, double a_seconds, const Draft &b, double b_seconds, double base) const {
    return std::all_of(b.leaves.begin(), b.leaves.end(), [&](const Leaf &theirs) {
      return std::any_of(a.leaves.begin(), a.leaves.end(), [&](const Leaf &ours) {
        return ours.m <= theirs.m && ours.inside <= theirs.inside &&
               ticks(a_seconds + a.fill_seconds - base) + ticks(ours.seconds) <= ticks(b_seconds + b.fill_seconds - base) + ticks(theirs.seconds);
      });
    });
  }
  // Is `a` never worse than `b`?
  bool covers(const Draft &a, const Draft &b) const {
    const Bytes room = !a.choice.k && b.choice.k ? chain_.x[i_ + 1] : 0;  // without k the output lies inside what comes next
    if (a.choice.k && !b.choice.k) return false;
    if (a.bytes + room > b.bytes || a.leaves.back().m > b.leaves.back().m || a.leaves.back().inside > b.leaves.back().inside) return false;
    if ((b.gone && !a.gone) || (a.stays && !b.stays) || (a.at_once && !b.at_once)) return false;
    if (b.choice.slots == sticky_ && !(a.choice.slots == sticky_) && !options_.slots_at_jumps) return false;
    if (a.first.bytes > b.first.bytes || !leaves_cover(a, a.first.seconds, b, b.first.seconds, base_first_)) return false;
    for (size_t v = 0; v < starts_.size(); ++v) {
      if (b.again[v].seconds < 0) continue;
      if (a.again[v].seconds < 0 || a.again[v].bytes > b.again[v].bytes) return false;
      if (!leaves_cover(a, a.again[v].seconds, b, b.again[v].seconds, base_[v])) return false;
    }
    return true;
  }
  void keep_best() {
    base_first_ = 1e300;
    base_.assign(starts_.size(), 1e300);
    for (const Draft &d : drafts_) {
      base_first_ = std::min(base_first_, d.first.seconds + d.fill_seconds);
      for (size_t v = 0; v < starts_.size(); ++v)
        if (d.again[v].seconds >= 0) base_[v] = std::min(base_[v], d.again[v].seconds + d.fill_seconds);
    }
    // What covers another never has more bytes; among equals the first stays.
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft &a, const Draft &b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.first.seconds + a.fill_seconds < b.first.seconds + b.fill_seconds;
    });
    std::vector<Draft> best;
    for (Draft &d : drafts_) {
      if (std::any_of(best.begin(), best.end(), [&](const Draft &b) { return covers(b, d); })) continue;
      std::erase_if(best, [&](const Draft &b) { return covers(d, b); });
      best.push_back(std::move(d));
    }
    drafts_ = std::move(best);
  }

  void finish(Segment *out, std::vector<Choice> *choices, std::vector<Choice> *starts) {
    out->reads_input = link_.reads_input;
    out->wall = link_.wall;
    out->sticky = bytes_of(sticky_);
    for (const Draft &d : drafts_) {
      Option o;
      o.bytes = d.bytes;
      o.k = d.choice.k;
      o.bare = d.choice.slots == sticky_;
      o.gone = d.gone;
      o.stays = d.stays;
      o.at_once = d.at_once;
      o.choice = static_cast<uint32_t>(choices->size());
      choices->push_back(d.choice);
      Choice::Several several;
      add_points(d, false, &o.leaf, &several.leaf);
      add_points(d, true, &o.leaf_inside, &several.leaf_inside);
      several.first = d.first.calls;
      for (const Ran &r : d.again) several.again.push_back(r.calls);
      if (several_) choices->back().several = std::make_shared<const Choice::Several>(std::move(several));
      out->options.push_back(std::move(o));
      out->first.run.push_back({d.first.bytes, ticks(d.first.seconds + d.fill_seconds - base_first_)});
    }
    for (size_t v = 0; v < starts_.size(); ++v) {
      Start s;
      s.extra = bytes_of(starts_[v] - sticky_);
      s.choice = static_cast<uint32_t>(v);
      for (const Draft &d : drafts_) s.run.push_back(d.again[v].seconds < 0 ? Run{} : Run{d.again[v].bytes, ticks(d.again[v].seconds + d.fill_seconds - base_[v])});
      for (size_t to = 0; to < starts_.size(); ++to) s.jump.push_back(jump(v, to));
      out->starts.push_back(std::move(s));
      starts->push_back({starts_[v], false, {}, false, nullptr});
    }
    for (size_t to = 0; to < starts_.size(); ++to) {
      Run r;
      if (link_.rerun && !link_.wall && base_[to] < 1e299) {
        double seconds = 0;
        r.bytes = first_run(starts_[to], &seconds);
        r.cost = ticks(seconds + base_[to] - base_first_);
      }
      out->first.jump.push_back(r);
    }
    if (options_.fills && link_.rerun && !link_.wall) add_fills(out);
  }
  // Bytes ascend, costs descend.
  void add_points(const Draft &d, bool inside, std::vector<Point> *points, std::vector<Calls> *calls) const {
    for (size_t k = d.leaves.size(); k-- > 0;) {
      const Leaf &l = d.leaves[k];
      const Point p{inside ? l.inside : l.m, ticks(l.seconds)};
      if (!points->empty() && p.m <= points->back().m) points->pop_back(), calls->pop_back();
      if (!points->empty() && p.c >= points->back().c) continue;
      points->push_back(p);
      calls->push_back(l.calls);
    }
  }
  // Pairs of options of which one has less slots than the other.
  void add_fills(Segment *out) const {
    for (uint32_t d = 0; d < drafts_.size(); ++d)
      for (uint32_t less = 0; less < drafts_.size(); ++less) {
        const Draft &all = drafts_[d], &part = drafts_[less];
        if (all.at_once || part.at_once || part.again[0].seconds < 0 || part.choice.slots == all.choice.slots || !all.choice.slots.contains(part.choice.slots)) continue;
        Fill f;
        f.option = d;
        f.keeps = less;
        double seconds = 0;
        f.peak = call(part.choice.slots | link_.given, all.choice.k, all.choice.slots, &seconds);
        f.held = bytes_of(part.choice.slots) + (all.choice.k ? chain_.x[i_ + 1] : 0);
        f.first = {part.first.bytes, ticks(part.first.seconds + seconds + all.fill_seconds - base_first_)};
        f.again = {part.again[0].bytes, ticks(part.again[0].seconds + seconds + all.fill_seconds - base_[0])};
        out->fills.push_back(f);
      }
  }
  Run jump(size_t from, size_t to) const {
    Run r;
    if (!link_.rerun || link_.wall || !starts_[to].contains(starts_[from]) || base_[to] > 1e299) return r;
    double seconds = 0;
    r.bytes = again_run(starts_[from], starts_[to], &seconds);
    r.cost = ticks(seconds + base_[to] - base_[from]);
    return r;
  }

  const Chain &chain_;
  const Graph &graph_;
  const Link &link_;
  const Shape &shape_;
  const uint32_t i_;
  const Bits sticky_;
  const TableOptions options_;
  const double tick_;
  const bool exact_;
  const Bits needed_;
  std::vector<Bits> sets_, starts_;
  std::vector<Draft> drafts_;
  double base_first_ = 0;
  std::vector<double> base_;
  using Ways = std::vector<std::vector<Way>>;  // by set of slots
  bool several_ = false;
  Ways first_ways_, fill_ways_[2];
  std::vector<Ways> again_ways_;               // by start
};

// Equal keys: equal tables. Names do not count.
std::vector<uint64_t> table_key(const Chain &chain, uint32_t i, const Bits &sticky) {
  const Graph &graph = *chain.graph;
  const Link &link = chain.links[i];
  const Shape &shape = *graph.nodes[i].shape;
  std::vector<uint64_t> key{uint64_t{shape.slot_count()} << 32 | shape.item_count(), uint64_t{shape.whole()} | uint64_t{shape.replayable()} << 1,
                            shape.forward_scratch(), shape.backward_scratch(), static_cast<uint64_t>(chain.x[i]), static_cast<uint64_t>(chain.x[i + 1]),
                            static_cast<uint64_t>(chain.g[i + 1]), static_cast<uint64_t>(chain.g_new[i]),
                            static_cast<uint64_t>(link.wall) | uint64_t{link.runs} << 1 | uint64_t{link.reads_input} << 2 | uint64_t{link.reads_output} << 3 |
                                uint64_t{link.rerun} << 4 | uint64_t{link.holds_input} << 5 | uint64_t{i + 1 == chain.size()} << 6};
  for (const Bits *b : {&link.first_outputs, &link.outputs, &link.given, &sticky})
    for (uint32_t w = 0; w < Bits::kWords; ++w) key.push_back(b->word(w));
  for (uint32_t k = 0; k < shape.item_count(); ++k) {
    const Item &it = shape.item(k);
    key.push_back(uint64_t{it.flags} << 32 | it.group);
    for (uint32_t w = 0; w < Bits::kWords; ++w) key.push_back(it.reads.word(w));
    key.push_back(graph.bytes_of(i, k));
    key.push_back(std::bit_cast<uint64_t>(graph.seconds_of(i, k)));
  }
  return key;
}

}  // namespace

double choose_tick(const Graph &graph, bool *exact) {
  constexpr double kLargest = 1 << 20, kFine = 1 << 14;
  std::vector<double> costs;
  for (double s : graph.item_seconds)
    if (s > 0) costs.push_back(s);
  std::sort(costs.begin(), costs.end());
  costs.erase(std::unique(costs.begin(), costs.end()), costs.end());
  *exact = true;
  if (costs.empty()) return 1;
  for (double parts = 1; parts <= 1024 && costs.back() * parts / costs.front() <= kLargest; ++parts) {
    const double unit = costs.front() / parts;
    const bool fits = std::all_of(costs.begin(), costs.end(), [&](double c) {
      const double count = c / unit;
      return std::fabs(count - std::round(count)) <= 1e-9 * count + 1e-9;
    });
    if (fits) return unit;
  }
  *exact = false;
  return graph.forward_seconds() / graph.node_count() / kFine;
}

Tables make_tables(const Chain &chain, const std::vector<Bits> &sticky, const TableOptions &options, double tick) {
  bool exact = false;
  choose_tick(*chain.graph, &exact);
  Tables t;
  const uint32_t n = chain.size();
  t.model.x = chain.x;
  t.model.g = chain.g;
  t.model.tick = tick;
  t.model.slots_at_jumps = options.slots_at_jumps;
  t.model.segments.resize(n);
  t.options.resize(n);
  t.starts.resize(n);
  std::map<std::vector<uint64_t>, uint32_t> known;
  std::vector<uint32_t> first_like(n);
  uint64_t states = 0;  // of all graphs of calls
  for (uint32_t i = 0; i < n; ++i) {
    first_like[i] = known.emplace(table_key(chain, i, sticky[i]), i).first->second;
    if (first_like[i] == i && options.calls && CallGraph::can(chain, i)) states += CallGraph::states(chain, i);
  }
  TableOptions some = options;
  std::vector<double> base(n);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t j = first_like[i];
    if (j == i) {
      some.calls = options.calls && (states <= kMostStates || CallGraph::states(chain, i) <= kFewStates);
      base[i] = SegmentMaker(chain, i, sticky[i], some, tick, exact).make(&t.model.segments[i], &t.options[i], &t.starts[i]);
    } else {
      t.model.segments[i] = t.model.segments[j];
      t.options[i] = t.options[j];
      t.starts[i] = t.starts[j];
    }
    t.base_seconds += base[j];
  }
  name_kinds(&t.model);
  return t;
}

}  // namespace ckpt::plan::exact
