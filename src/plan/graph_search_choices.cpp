#include "plan/graph_search_choices.h"

#include <algorithm>

namespace ckpt::plan {
namespace {

constexpr size_t kMaxPaired = 64;  // single moves, up to which pairs of them are moves too

}  // namespace

ChoiceSpace::ChoiceSpace(const Graph &graph, const GradientMap &gradients) : graph_(graph), gradients_(gradients) {
  find_choices();
  find_moves();
}

void ChoiceSpace::find_choices() {
  std::vector<uint32_t> last(graph_.value_count(), kNone);
  std::vector<uint8_t> apart(graph_.value_count(), 0);
  for (uint32_t i = 0; i < graph_.node_count(); ++i)
    for (uint32_t v : graph_.inputs_of(i)) {
      const uint32_t producer = graph_.values[v].producer, before = last[v] != kNone ? last[v] : producer;
      if (producer != kNone && i > before + 1) apart[v] = 1;
      last[v] = i;
    }
  always_.resize(graph_.node_count());
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    const Shape &s = *graph_.nodes[i].shape;
    first_of_.push_back(static_cast<uint32_t>(what_.size()));
    if (gradients_.runs[i])
      (s.slots() - s.keep() - s.again()).each([&](uint32_t k) {
        if (graph_.item_footprint(i, k) == 0) always_[i].set(k);
        else what_.push_back({i, k, kNone, i});
      });
    (s.outputs() - s.keep() - s.caller()).each([&](uint32_t k) {
      const uint32_t v = graph_.value_of(i, k);
      if (graph_.item_footprint(i, k) == 0) return;
      what_.push_back({i, kNone, v, last[v] != kNone ? last[v] : i});
      const auto at = static_cast<uint32_t>(what_.size() - 1);
      for (Choice to : {kKept, kKeptAgain, kMadeAgain, kKeptOnce}) {
        single_.push_back({at, to});
        if (apart[v]) single_.push_back({at, static_cast<Choice>(to | kPass)});
      }
    });
  }
  first_of_.push_back(static_cast<uint32_t>(what_.size()));
  for (uint32_t at = 0; at < what_.size(); ++at)
    if (what_[at].slot != kNone)
      for (Choice to : {kKept, kKeptAgain, kMadeAgain, kKeptOnce}) single_.push_back({at, to});
}

void ChoiceSpace::find_moves() {
  const uint32_t n = graph_.node_count();
  uint32_t size = 1;
  while (size * 2 <= n) size *= 2;
  for (; size >= 1; size /= 2)
    for (uint32_t from = 0; from + size <= n; from += std::max(1u, size / 2)) {
      if (size > 1)
        for (Choice values : {kMadeAgain, kKeptAgain, kKept}) windows_.push_back({from, from + size, kNothing, values});
      for (Choice slots : {kMadeAgain, kKeptAgain, kKept}) windows_.push_back({from, from + size, slots, kNothing});
      if (size == 1) continue;
      windows_.push_back({from, from + size, kMadeAgain, kMadeAgain});
      windows_.push_back({from, from + size, kKeptAgain, kKeptAgain});
      windows_.push_back({from, from + size, kMadeAgain, kKeptAgain});
    }
  if (single_.size() <= kMaxPaired) pairs_ = static_cast<uint32_t>(single_.size() * (single_.size() - 1) / 2);
}

Choices ChoiceSpace::from_policy(const Policy &policy) const {
  const Choice dropped = policy.again == Again::nothing ? kMadeAgain : kKeptAgain;
  Choices c(what_.size());
  for (uint32_t at = 0; at < what_.size(); ++at) {
    const What &w = what_[at];
    if (w.slot == kNone) c[at] = policy.keep_value[w.value] ? kKept : dropped;
    else c[at] = policy.keep_slots[w.node].has(w.slot) ? kKept : policy.again == Again::everything ? kKeptAgain : kMadeAgain;
  }
  return c;
}

Policy ChoiceSpace::to_policy(const Choices &choices) const {
  Policy p;
  p.keep_slots = always_;
  p.again_slots = always_;
  p.once_slots.resize(graph_.node_count());
  p.keep_value.assign(graph_.value_count(), 1);
  p.again_value.assign(graph_.value_count(), 1);
  p.pass_value.assign(graph_.value_count(), 0);
  for (uint32_t i = 0; i < graph_.node_count(); ++i) p.again_slots[i] |= graph_.nodes[i].shape->backward_outputs();
  for (uint32_t at = 0; at < what_.size(); ++at) {
    const What &w = what_[at];
    const Choice c = choices[at] & 3;
    if (w.slot == kNone) {
      p.keep_value[w.value] = c == kKept || c == kKeptOnce;
      p.again_value[w.value] = c == kKept || c == kKeptAgain;
      p.pass_value[w.value] = (choices[at] & kPass) != 0;
      if (c == kMadeAgain || c == kKeptOnce) p.again_slots[w.node].clear(graph_.values[w.value].item);
    } else {
      if (c == kKept || c == kKeptOnce) p.keep_slots[w.node].set(w.slot);
      if (c == kKept || c == kKeptAgain) p.again_slots[w.node].set(w.slot);
      if (c == kKeptOnce) p.once_slots[w.node].set(w.slot);
    }
  }
  return p;
}

bool ChoiceSpace::set(uint32_t at, Choice to, Choices *choices) const {
  if ((*choices)[at] == to) return false;
  (*choices)[at] = to;
  return true;
}

bool ChoiceSpace::move(uint32_t number, Choices *choices) const {
  if (number < windows_.size()) {
    const Window &w = windows_[number];
    bool changed = false;
    for (uint32_t at = first_of_[w.from]; at < first_of_[w.to]; ++at) {
      if (what_[at].slot != kNone && w.slots != kNothing) changed |= set(at, w.slots, choices);
      if (what_[at].slot == kNone && w.values != kNothing && what_[at].last < w.to) changed |= set(at, w.values, choices);
    }
    return changed;
  }
  number -= static_cast<uint32_t>(windows_.size());
  if (number < single_.size()) return set(single_[number].at, single_[number].to, choices);
  number -= static_cast<uint32_t>(single_.size());
  uint32_t second = 1;  // pairs in the order (0,1), (0,2), (1,2), (0,3), ...
  while (number >= second) number -= second++;
  const Single &a = single_[number], &b = single_[second];
  if (a.at == b.at) return false;
  return set(a.at, a.to, choices) && set(b.at, b.to, choices);  // one alone is another move
}

}  // namespace ckpt::plan
