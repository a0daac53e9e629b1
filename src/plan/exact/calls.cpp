#include "plan/exact/calls.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

namespace ckpt::plan::exact {
namespace {

constexpr uint32_t kNoEdge = UINT32_MAX;
constexpr uint32_t kMostWholeSlots = 5;
constexpr uint32_t kAllWaysSlots = 5;   // up to here all Pareto-optimal ways; beyond, the quickest one and the one of least bytes
constexpr size_t kQuickest = 1;

// A kernel makes `k` and these.
Bits made_with(const Shape &shape, uint32_t k) {
  Bits group = Bits::one(k);
  for (uint32_t m = 0; m < shape.slot_count() && shape.item(k).group != 0; ++m)
    if (shape.item(m).group == shape.item(k).group) group.set(m);
  return group;
}

}  // namespace

bool CallGraph::can(const Chain &chain, uint32_t i) {
  const Shape &s = *chain.graph->nodes[i].shape;
  if (!chain.links[i].rerun || chain.links[i].holds_input || s.slot_count() > (s.whole() ? kMostWholeSlots : kMostSlots)) return false;
  for (uint32_t k = s.slot_count(); k < s.item_count(); ++k)
    if (s.item(k).group != 0) return false;
  return true;
}

CallGraph::CallGraph(const Chain &chain, uint32_t i, double tick)
    : chain_(chain), graph_(*chain.graph), link_(chain.links[i]), shape_(*graph_.nodes[i].shape), i_(i), slots_(shape_.slot_count()), part_(tick / 64) {
  const uint32_t states = 2u << slots_;
  for (uint32_t from = 0; from < states; ++from) {
    add_forwards(from);
    slots_of(from).each([&](uint32_t k) {
      edges_.push_back({from, from & ~(1u << k), 0, 0, 0, Bits::one(k), true});
    });
  }
  out_.resize(states);
  in_.resize(states);
  for (uint32_t e = 0; e < edges_.size(); ++e) {
    out_[edges_[e].from].push_back(e);
    in_[edges_[e].to].push_back(e);
  }
}

Bytes CallGraph::bytes_of(const Bits &slots, bool output) const {
  Bytes sum = output ? chain_.x[i_ + 1] : 0;
  slots.each([&](uint32_t k) { sum += static_cast<Bytes>(graph_.item_footprint(i_, k)); });
  return sum;
}

CallGraph::Label CallGraph::called(const Bits &items, const Bits &live) const {
  const Closure c = shape_.closure(items, live);
  const Bits all = live | c.todo;
  const double seconds = graph_.seconds(i_, c);
  Bytes peak = bytes_of(all & shape_.slots(), !(all & link_.outputs).empty());
  if (shape_.forward_scratch() != 0) peak += static_cast<Bytes>(graph_.rule.footprint(shape_.forward_scratch()));
  return {peak, std::llround(seconds / part_), seconds, 0, kNoEdge, kNoEdge};
}

// `keeps_all`: what it makes on the way stays too.
void CallGraph::add_forward(uint32_t from, const Bits &items, bool keeps_all) {
  const Bits live = slots_of(from) | link_.given | (output_of(from) ? link_.outputs : Bits{});
  const Closure c = shape_.closure(items, live);
  if (c.todo.empty()) return;
  const Label l = called(items, live);
  const Bits stays = keeps_all ? (items | c.todo) : items;
  const bool output = output_of(from) || !(stays & link_.outputs).empty();
  edges_.push_back({from, state((live | stays) & shape_.slots(), output), l.peak, l.cost, l.seconds, stays - live, false});
}

void CallGraph::add_forwards(uint32_t from) {
  const Bits live = slots_of(from), missing = shape_.slots() - live;
  if (shape_.whole()) {
    for (uint32_t set = 0; set < 1u << slots_; ++set) {
      const Bits items = slots_of(set);
      if (!missing.contains(items)) continue;
      add_forward(from, items, false);
      if (!output_of(from)) add_forward(from, items | link_.outputs, false);
    }
    return;
  }
  missing.each([&](uint32_t k) {
    const Bits group = made_with(shape_, k);
    const Bits others = (group & missing) - Bits::first(k + 1);  // a group is asked for once, by the last of it
    if ((shape_.item(k).flags & CKPT_SLOT_ALONE) && live.contains(shape_.item(k).reads)) add_forward(from, Bits::one(k), false);
    if (!others.empty()) return;
    Bits reads;
    group.each([&](uint32_t m) { reads |= shape_.item(m).reads; });
    if ((live | group).contains(reads)) add_forward(from, group & missing, true);
  });
  if (!output_of(from) && !link_.outputs.empty()) {
    Bits reads;
    link_.outputs.each([&](uint32_t k) { reads |= shape_.item(k).reads; });
    if (live.contains(reads & shape_.slots())) add_forward(from, link_.outputs, false);
  }
}

// By state: labels of ascending cost. With few slots all that are Pareto-optimal.
CallGraph::Paths CallGraph::search(const std::vector<Label> &begin, bool backwards, const Bits &fixed) const {
  const auto &next = backwards ? in_ : out_;
  Paths paths;
  std::vector<Label> &labels = paths.labels;
  paths.of.resize(out_.size());
  for (const bool bytes_first : {false, true}) {
    if (bytes_first && slots_ <= kAllWaysSlots) break;
    using Key = std::tuple<int64_t, int64_t, uint32_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> queue;
    const auto push = [&](const Label &l) {
      queue.push(bytes_first ? Key{l.peak, l.cost, static_cast<uint32_t>(labels.size())} : Key{l.cost, l.peak, static_cast<uint32_t>(labels.size())});
      labels.push_back(l);
    };
    for (const Label &l : begin) push(l);
    std::vector<std::vector<uint32_t>> taken(out_.size());
    while (!queue.empty()) {
      const uint32_t at = std::get<2>(queue.top());
      queue.pop();
      const Label here = labels[at];
      std::vector<uint32_t> &mine = taken[here.state];
      if (!mine.empty() && (bytes_first || labels[mine.back()].peak <= here.peak || (slots_ > kAllWaysSlots && mine.size() >= kQuickest))) continue;
      mine.push_back(at);
      for (uint32_t e : next[here.state]) {
        const Edge &edge = edges_[e];
        if (edge.drop && !(edge.items & fixed).empty()) continue;
        const uint32_t to = backwards ? edge.from : edge.to;
        const Label l{std::max(here.peak, edge.peak), here.cost + edge.cost, here.seconds + edge.seconds, to, e, at};
        if (!taken[to].empty() && (bytes_first || labels[taken[to].back()].peak <= l.peak)) continue;
        push(l);
      }
    }
    for (size_t s = 0; s < taken.size(); ++s)
      for (uint32_t at : taken[s])
        if (paths.of[s].empty() || labels[at].peak < labels[paths.of[s].back()].peak) paths.of[s].push_back(at);
  }
  return paths;
}

// `label` came to be along these edges, or leads along them to the goal.
Way CallGraph::way(const Paths &paths, uint32_t label, bool backwards, bool first) const {
  const Label &last = paths.labels[label];
  Way w{last.peak, last.seconds, {}};
  uint32_t at = label;
  for (; paths.labels[at].edge != kNoEdge; at = paths.labels[at].before) {
    const Edge &e = edges_[paths.labels[at].edge];
    if (e.drop && !w.calls.empty() && w.calls.back().drop) w.calls.back().items |= e.items;
    else w.calls.push_back({e.items, e.drop});
  }
  if (!backwards) {
    if (first) w.calls.push_back({slots_of(paths.labels[at].state) | link_.first_outputs, false});
    std::reverse(w.calls.begin(), w.calls.end());
  }
  return w;
}

std::vector<std::vector<Way>> CallGraph::runs(bool first, const Bits &start) const {
  const Bits keep = shape_.keep() & shape_.slots(), fixed = first ? keep : start | keep;
  std::vector<Label> begin;
  if (!first) {
    begin.push_back({bytes_of(start, false), 0, 0, state(start, false), kNoEdge, kNoEdge});
  } else {
    for (uint32_t set = 0; set < 1u << slots_; ++set) {
      const Bits slots = slots_of(set);
      if (!slots.contains(keep)) continue;
      Label l = called(slots | link_.first_outputs, Bits{});
      l.state = state(slots, true);
      begin.push_back(l);
    }
  }
  const Paths paths = search(begin, false, fixed);
  std::vector<std::vector<Way>> ways(size_t{1} << slots_);
  for (uint32_t set = 0; set < ways.size(); ++set)
    for (uint32_t label : paths.of[state(slots_of(set), true)]) ways[set].push_back(way(paths, label, false, first));
  return ways;
}

std::vector<std::vector<Way>> CallGraph::fills(bool k, const Bits &want) const {
  const Bits keep = shape_.keep() & shape_.slots(), slots = (want & shape_.slots()) | keep;
  const bool output = k || !(want & link_.outputs).empty();
  const Paths paths = search({{0, 0, 0, state(slots, output), kNoEdge, kNoEdge}}, true, keep);
  std::vector<std::vector<Way>> ways(size_t{1} << slots_);
  for (uint32_t set = 0; set < ways.size(); ++set)
    for (uint32_t label : paths.of[state(slots_of(set), k)]) ways[set].push_back(way(paths, label, true, false));
  return ways;
}

}  // namespace ckpt::plan::exact
